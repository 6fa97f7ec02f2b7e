"""What stands under ``options:`` of TP-Link's plugs; needs no library."""

from typing import Literal

from pydantic import Field

from farm.model.record import Record


class TapoOptions(Record):
    """`user` is the account's mail address; `encryption` what the firmware speaks."""

    user: str = ""
    encryption: Literal["klap", "aes"] = "klap"

    @property
    def language(self) -> Literal["SMART.KLAP", "SMART.AES"]:
        """The library's name for it."""
        return "SMART.KLAP" if self.encryption == "klap" else "SMART.AES"


class KasaOptions(Record):
    """`child` is an outlet of a strip, from 0; `encryption` ``klap`` for firmware since 2023."""

    child: int | None = Field(default=None, ge=0, le=15)
    user: str = ""
    encryption: Literal["xor", "klap"] = "xor"

    @property
    def language(self) -> Literal["IOT.XOR", "IOT.KLAP"]:
        """The library's name for it."""
        return "IOT.XOR" if self.encryption == "xor" else "IOT.KLAP"
