# A peer of the tests: `sh peer.sh KIND --list` and `sh peer.sh KIND --lane L --dir D [--quick] [--per-second R]`. It
# measures nothing and answers figures that its kind decides; `cost` beside it, if there, sets the lanes' medians as lines "LANE MICROSECONDS".
set -eu
kind=$1
shift
if [ "$1" = --list ]; then
    lanes='{"name":"noop_execute","about":"does nothing","tag":"focused","group":"profile","ops_unit":"calls"},
        {"name":"work","about":"works","tag":"release","group":"writes","ops_unit":"rows"}'
    [ "$kind" = other ] || lanes="$lanes,"'{"name":"extra_work","about":"works more","tag":"focused","group":"writes","ops_unit":"rows"}'
    case $kind in
        raw) lanes="$lanes,"'{"name":"flat_out","about":"paces","tag":"focused","group":"writes","ops_unit":"rows"}' ;;
        paced) lanes="$lanes,"'{"name":"paced_work","about":"is paced","tag":"focused","group":"writes","ops_unit":"rows","pace":{"of":"flat_out","share":0.5}}' ;;
    esac
    echo '{"peer":"'"$kind"'","version":"fake 1","sqlite":"0.0","compile_options":["FAKE"],"lanes":['"$lanes"']}'
    exit 0
fi
lane=$2
dir=$4
shift 4
[ "${1-}" != --quick ] || shift
begun=null
[ "${1-}" != --per-second ] || begun=$2
[ -z "$(ls -A "$dir")" ] || { echo "the folder is not fresh" >&2; exit 1; }
touch "$dir/database"
case $kind in
    crashing) echo "out of cheese" >&2; exit 3 ;;
    hanging) touch "${HANGING_MARK:-$dir/hanging}"; exec sleep 600 ;;
esac
p50=10
[ ! -f cost ] || p50=$(awk -v lane="$lane" -v p50=10 '$1 == lane { p50 = $2 } END { print p50 }' cost)
# The noise of a machine: a little, and never the same twice.
awk -v lane="$lane" -v peer="$kind" -v begun="$begun" -v p50="$p50" -v noise="$(( $$ % 5 ))" 'BEGIN {
    p50 = p50 * (1 + noise / 1000)
    max = peer == "lying" ? p50 / 2 : p50 * 4
    printf "{\"lane\":\"%s\",\"peer\":\"%s\",\"ops\":1000,\"seconds\":%.6f,", lane, peer, p50 / 1000
    printf "\"p50_us\":%.3f,\"p90_us\":%.3f,\"p95_us\":%.3f,\"p99_us\":%.3f,\"p999_us\":%.3f,\"max_us\":%.3f,", p50, p50 * 1.5, p50 * 1.6, p50 * 2, p50 * 3, max
    printf "\"work_us\":null,\"cpu_seconds\":0.01,\"peak_rss_bytes\":4000000,\"sqlite\":\"0.0\",\"compile_options\":[\"FAKE\"],\"peer_version\":\"fake 1\","
    printf "\"extra\":{\"begun\":%s,", begun
    printf "\"latency_quantiles\":[[0.5,%.3f],[0.9,%.3f],[0.99,%.3f],[1,%.3f]]}}\n", p50, p50 * 1.5, p50 * 2, p50 * 4
}'
