#!/bin/bash
# Boots one board inside its new namespaces: board_boot.sh FOLDER HOSTNAME
#
# FOLDER/disk is the board's own tmpfs (overlayfs refuses an upper layer on the file system of its
# lower one): lower/ holds the board's own system files, upper/ and work/ what it changed since.
# FOLDER/machine is the way out for `reboot`; FOLDER/boot_id is new for each boot.
set -e
folder=$1 name=$2
root=$folder/disk/root
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$folder/disk/lower:/,upperdir=$folder/disk/upper,workdir=$folder/disk/work" "$root"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount --bind "$root/dev/pts/ptmx" "$root/dev/ptmx"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/sys"
mkdir -p "$root/run/sshd" "$root/run/machine"
mount --bind "$folder/machine" "$root/run/machine"
mount --bind "$folder/boot_id" "$root/proc/sys/kernel/random/boot_id"
hostname "$name"

# A TX2's /sys as far as nvpmodel, jetson_clocks and power rails go. /proc/device-tree cannot be
# made on x86, so the model is only where that link leads on a board.
sys=$root/sys
put() { mkdir -p "$sys/${1%/*}"; printf '%s\n' "$2" >"$sys/$1"; }
mkdir -p "$sys/firmware/devicetree/base"
printf 'quill\0' >"$sys/firmware/devicetree/base/model"
printf 'nvidia,p2597-0000+p3310-1000\0nvidia,quill\0nvidia,tegra186\0' >"$sys/firmware/devicetree/base/compatible"
for n in 1 2 3 4 5; do put devices/system/cpu/cpu$n/online 1; done
put devices/system/cpu/online 0-5
for n in 0 1; do
    cpu=devices/system/cpu/cpu$n/cpufreq
    put $cpu/scaling_available_frequencies "345600 499200 652800 806400 960000 1113600 1267200 1420800 1574400 1728000 1881600 2035200"
    put $cpu/scaling_min_freq 345600
    put $cpu/scaling_max_freq 2035200
    put $cpu/scaling_governor schedutil
done
gpu=devices/17000000.gp10b/devfreq/17000000.gp10b
put $gpu/available_frequencies "114750000 216750000 318750000 420750000 522750000 624750000 675750000 828750000 905250000 1032750000 1134750000 1236750000 1300500000"
put $gpu/min_freq 114750000
put $gpu/max_freq 1300500000
put devices/gpu.0/power/control auto
put kernel/nvpmodel_emc_cap/emc_iso_cap 0
put kernel/debug/bpmp/debug/clk/emc/mrq_rate_locked 0
put devices/pwm-fan/target_pwm 0
put devices/virtual/thermal/thermal_zone0/type BCPU-therm
put devices/virtual/thermal/thermal_zone0/temp 35500
mkdir -p "$sys/class/thermal"
ln -s ../../devices/virtual/thermal/thermal_zone0 "$sys/class/thermal/thermal_zone0"
put bus/i2c/drivers/ina3221x/0-0041/iio:device1/rail_name_0 VDD_IN
put bus/i2c/drivers/ina3221x/0-0041/iio:device1/in_power0_input 1649

# Pid 1 reaps what is left behind; sshd re-executes itself on SIGHUP, so it is never replaced.
exec chroot "$root" /bin/sh -c '
nvpmodel --boot
/usr/sbin/sshd -t -f /etc/ssh/sshd_board || exit 1
/usr/sbin/sshd -D -e -f /etc/ssh/sshd_board & while :; do wait; sleep 1; done'
