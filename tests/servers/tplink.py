"""TP-Link plugs on loopback: XOR over TCP (older), KLAP v2 over HTTP (newer)."""

import asyncio
import hashlib
import json
import secrets
import struct

from aiohttp import web
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tests.servers.meter_http import MeterHttpServer
from tests.servers.meter_tcp import MeterTcpServer

MAC = "50:C7:BF:AA:BB:CC"
USER, PASSWORD = "lab@example.org", "not-a-secret"


class KasaServer(MeterTcpServer):
    """Four bytes of length, then JSON under an autokey XOR that begins with 171."""

    def __init__(self, *, children: int = 0, is_old: bool = False) -> None:
        super().__init__()
        self.children, self.is_old = children, is_old
        self.is_on = True
        self.has_emeter = True

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            length = struct.unpack(">I", await reader.readexactly(4))[0]
            asked = json.loads(unveiled(await reader.readexactly(length)))
            body = veiled(await self._answer(asked))
            writer.write(struct.pack(">I", len(body)) + body)
            await writer.drain()

    async def _answer(self, asked: dict[str, dict[str, dict[str, object]]]) -> bytes:
        async with self.request():
            if self.fault == "garbage":
                return b"%&/ not this"
            told: dict[str, object] = {}
            for part, questions in asked.items():
                for question, arguments in questions.items():
                    if part != "context":
                        told[part] = {question: self._told(question, arguments)}
            return json.dumps(told).encode()

    def _told(self, question: str, arguments: dict[str, object]) -> dict[str, object]:
        if question == "set_relay_state":
            self.is_on = arguments["state"] == 1
            return {"err_code": 0}
        if question == "get_sysinfo":
            told: dict[str, object] = {"model": "KP115(EU)", "mac": MAC, "sw_ver": "1.0.16"}
            told |= {"deviceId": "D" * 40, "relay_state": int(self.is_on), "err_code": 0}
            kids = [{"id": f"0{i}", "state": int(self.is_on)} for i in range(self.children)]
            return told | ({"children": kids} if kids else {})
        if not self.has_emeter:
            return {"err_code": -1, "err_msg": "module not support"}
        if self.is_old:
            told = {"voltage": 230.5, "current": 0.05, "power": self.shown_w, "total": 1.5}
            return told | {"err_code": 0}
        told = {"voltage_mv": 230500, "current_ma": 50, "total_wh": 1500}
        return told | {"power_mw": self.shown_w * 1000, "err_code": 0}


def veiled(plain: bytes) -> bytes:
    key, out = 171, bytearray()
    for byte in plain:
        key ^= byte
        out.append(key)
    return bytes(out)


def unveiled(cipher: bytes) -> bytes:
    key, out = 171, bytearray()
    for byte in cipher:
        out.append(key ^ byte)
        key = byte
    return bytes(out)


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


class TapoServer(MeterHttpServer):
    """Two handshakes that prove the login, then requests under AES with a counter."""

    def __init__(self, *, has_emeter: bool = True) -> None:
        super().__init__()
        self.has_emeter = has_emeter
        self.is_on = True
        login = hashlib.sha1(USER.encode()).digest() + hashlib.sha1(PASSWORD.encode()).digest()
        self._login = sha256(login)
        self._seeds = b""
        self._session = ""

    def refusal(self) -> web.Response:
        return web.Response(status=403)

    async def reply(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.path == "/app/handshake1":
            remote = secrets.token_bytes(16)
            self._seeds, self._session = body + remote, secrets.token_hex(16)
            answer = web.Response(body=remote + sha256(self._seeds + self._login))
            answer.headers["Set-Cookie"] = f"TP_SESSIONID={self._session};TIMEOUT=86400"
            return answer
        if request.cookies.get("TP_SESSIONID") != self._session:
            return self.refusal()
        local, remote = self._seeds[:16], self._seeds[16:]
        if request.path == "/app/handshake2":
            is_right = body == sha256(remote + local + self._login)
            return web.Response(status=200 if is_right else 403)
        counter = int(request.query["seq"])
        asked = json.loads(self._opened(body[32:], counter))
        return web.Response(body=self._sealed(json.dumps(self._told(asked)).encode(), counter))

    def _told(self, asked: dict[str, object]) -> dict[str, object]:
        method = str(asked["method"])
        result: dict[str, object] = {}
        if method == "get_device_info":
            result = {"model": "P110", "mac": MAC.replace(":", "-"), "fw_ver": "1.3.0"}
            result |= {"device_on": self.is_on, "nickname": "", "ssid": ""}
        elif method == "set_device_info":
            params = asked["params"]
            assert isinstance(params, dict)
            self.is_on = params["device_on"]
        elif method == "get_emeter_data" and self.has_emeter:
            result = {"power_mw": self.shown_w * 1000, "voltage_mv": 230500, "current_ma": 50}
        elif method == "get_energy_usage":
            result = {"current_power": self.shown_w * 1000, "today_energy": 12}
        else:
            return {"error_code": -1002}
        return {"result": result, "error_code": 0}

    def _cipher(self, counter: int) -> Cipher[modes.CBC]:
        key = sha256(b"lsk" + self._seeds + self._login)[:16]
        start = sha256(b"iv" + self._seeds + self._login)[:12] + struct.pack(">i", counter)
        return Cipher(algorithms.AES(key), modes.CBC(start))

    def _opened(self, body: bytes, counter: int) -> bytes:
        opener = self._cipher(counter).decryptor()
        unpadder = padding.PKCS7(128).unpadder()
        plain = unpadder.update(opener.update(body) + opener.finalize())
        return plain + unpadder.finalize()

    def _sealed(self, plain: bytes, counter: int) -> bytes:
        padder = padding.PKCS7(128).padder()
        padded = padder.update(plain) + padder.finalize()
        sealer = self._cipher(counter).encryptor()
        body = sealer.update(padded) + sealer.finalize()
        signature = sha256(b"ldk" + self._seeds + self._login)[:28]
        return sha256(signature + struct.pack(">i", counter) + body) + body
