# What a payload tells farm, for POSIX sh:   . "$FARM_SH"
#
#   batch=$(farm_param batch)
#   farm_window_begin; ...the measured part...; farm_window_end
#   farm_metric throughput 57.9 images/s
#
# /proc/uptime is the boot-time clock with a resolution of 10 ms. It is read by the shell
# itself, without a process: a fork would show in the measurement.

_farm_event() {
    printf '%s\n' "$1" >>"${FARM_EVENTS:-/dev/stderr}"
}

# Sets _farm_text: a text as the inside of a JSON string, \ and " escaped, control characters
# blanked. A plain text, as most are, costs no process.
_farm_json() {
    case $1 in
    *[!A-Za-z0-9' _.,:;/%+*=()-']*)
        _farm_text=$(printf '%s' "$1" | tr '\000-\037\177' ' ' | LC_ALL=C sed 's/[\\"]/\\&/g')
        ;;
    *) _farm_text=$1 ;;
    esac
}

_farm_now() {
    read -r _farm_t _farm_rest </proc/uptime
}

farm_window_begin() {
    _farm_now
    _farm_event "{\"event\": \"window_begin\", \"name\": \"${1:-measured}\", \"t\": $_farm_t}"
}

farm_window_end() {
    _farm_now
    _farm_event "{\"event\": \"window_end\", \"name\": \"${1:-measured}\", \"t\": $_farm_t}"
}

# farm_metric NAME VALUE UNIT
farm_metric() {
    case $2 in
    '' | *[!0-9.eE+-]*)
        echo "farm_metric: $1 is not a number: $2" >&2
        return 2
        ;;
    esac
    _farm_json "$1"
    _farm_name=$_farm_text
    _farm_json "$3"
    _farm_event "{\"event\": \"metric\", \"name\": \"$_farm_name\", \"value\": $2, \"unit\": \"$_farm_text\"}"
}

# farm_progress DONE OF
farm_progress() {
    _farm_event "{\"event\": \"progress\", \"done\": $1, \"of\": $2}"
}

farm_note() {
    _farm_json "$*"
    _farm_event "{\"event\": \"note\", \"text\": \"$_farm_text\"}"
}

# Ends the payload: this board, engine or version cannot do it.
farm_unsupported() {
    _farm_json "$*"
    _farm_event "{\"event\": \"unsupported\", \"reason\": \"$_farm_text\"}"
    exit 77
}

# farm_param NAME [DEFAULT]: a text, number or truth value of FARM_PARAMS, which farm writes
# as one line of JSON with sorted keys and ", " and ": " between.
farm_param() {
    _farm_value=$(sed -n \
        -e 's/.*[{ ]"'"$1"'": "\([^"\\]*\)"[,}].*/\1/p' \
        -e 's/.*[{ ]"'"$1"'": \([-+.0-9A-Za-z]*\)[,}].*/\1/p' "$FARM_PARAMS")
    if [ -n "$_farm_value" ]; then
        printf '%s\n' "$_farm_value"
    elif [ $# -gt 1 ]; then
        printf '%s\n' "$2"
    else
        echo "farm_param: no parameter $1" >&2
        return 1
    fi
}
