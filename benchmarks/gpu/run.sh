#!/usr/bin/env bash
# Runs every check for a machine with a GPU and writes one report. `./dev gpu-bundle` makes the
# folder that contains this file; README.md describes its use. Needs only bash and coreutils.
# Exit status: 0 all passed, 1 something failed, 2 usage, 3 no CUDA device.
set -uo pipefail
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$here/bin

usage() {
  cat <<'TEXT'
usage: run.sh --out DIR [OPTION...]

  --out DIR          where report.txt, report.json, logs and logs.tar.gz go; written after each check
  --resume           keep what passed in DIR, by the same bundle on the same GPU, and run the rest
  --minutes N        time for all checks together (default 9); those that do not fit are left out
  --conformance DIR  recorded calls of operators, for ops_conformance
  --parity DIR       folders gpt2 and llama of recorded training, for parity
  --only NAME,...    these checks alone
  --torch PYTHON     whose PyTorch is compared (default python3)
  --torch-device D   where PyTorch's side runs (default cuda:0)
  --small            everything at sizes at which figures mean nothing: to try this script itself
TEXT
}

bad_usage() {
  echo "run.sh: $*" >&2
  usage >&2
  exit 2
}

out='' minutes=9 conformance='' parity='' only='' small='' torch=python3 torch_device=cuda:0 resume=''
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help)
      usage
      exit 0
      ;;
    --small | --resume)
      printf -v "${1#--}" yes
      shift
      ;;
    --out | --minutes | --conformance | --parity | --only | --torch | --torch-device)
      [ $# -ge 2 ] || bad_usage "$1 needs a value"
      name=${1#--}
      printf -v "${name//-/_}" '%s' "$2"
      shift 2
      ;;
    *) bad_usage "unknown argument \"$1\"" ;;
  esac
done
[ -n "$out" ] || bad_usage "--out is missing"
[[ $minutes =~ ^[1-9][0-9]*$ ]] || bad_usage "--minutes: expected a whole number above 0, got \"$minutes\""
# Checks run in another folder, so these paths must be absolute.
[ -z "$conformance" ] || conformance=$(realpath -m -- "$conformance")
[ -z "$parity" ] || parity=$(realpath -m -- "$parity")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
out=$(cd "$out" && pwd)

# CUDA's libraries may be in folders that the dynamic linker does not search, such as a Python
# environment.
cuda_folders() {
  find /usr/lib /usr/local /opt "$HOME" -maxdepth 10 \
    \( -name 'libcublasLt.so.1[23]' -o -name 'libnccl.so.2' -o -name 'libcudnn.so.9' \
    -o -name 'libnvrtc.so.1[23]' \) \
    -not -path '*/stubs/*' -printf '%h\n' 2>/dev/null | sort -u | paste -sd: -
}
folders=$(cuda_folders)
export LOCKSTEP_CUDA_LIBRARIES=${LOCKSTEP_CUDA_LIBRARIES:-$folders}
# In the same order: parts of cuDNN from different versions do not work together.
export LD_LIBRARY_PATH=$LOCKSTEP_CUDA_LIBRARIES${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# "cuda  CUDA 13.0: NVIDIA H200, 139.8 GiB ..." if there is a device, else the reason why not.
device=$("$bin/lockstep" doctor --run-dir "$work/runs" 2>&1 | grep -E '^[a-z]+ +CUDA ')

# shellcheck source=checks.sh
. "$here/checks.sh"

# --- running them --------------------------------------------------------------------------------

# Quotes text as an ASCII JSON string: a truncated line may end within a multi-byte character.
quoted() {
  printf '"%s"' "$(printf '%s' "$1" | tr -d '\000-\010\013-\037\177-\377' | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' \
    -e 's/\t/\\t/g' | sed -e ':a' -e 'N' -e '$!ba' -e 's/\n/\\n/g')"
}

# One-line summary of a log: its last line that is neither empty nor JSON, else its figures.
last_line() {
  local line
  line=$(grep -avE '^[[:space:]]*$|^\{.*\}$' "$1" | tail -n 1)
  case "$line:$(grep -acE '^\{.*\}$' "$1")" in
    :1) line=$(cat "$1") ;;
    :*) line="$(grep -acE '^\{.*\}$' "$1") rows of figures" ;;
  esac
  printf '%s\n' "${line:0:400}"
}

begun=$(date +%s)

# The JSON objects of a log, without one that was cut off.
figures_of() {
  local line quotes opened closed
  grep -aE '^\{.*\}$' "$1" | while IFS= read -r line; do
    quotes=${line//[^\"]/} opened=${line//[^\{]/} closed=${line//[^\}]/}
    [ ${#opened} != ${#closed} ] || [ $((${#quotes} % 2)) = 1 ] || printf '%s\n' "$line"
  done | paste -sd, -
}

# record NAME STATUS SECONDS: records a check; the JSON objects of its log are its figures. The last
# file that is written says that the check is done.
record() {
  local name=$1 status=$2 seconds=$3 log=$out/logs/$1.log summary figures
  figures=$(figures_of "$log")
  summary=$(last_line "$log")
  printf '%-10s %-17s %4s s  %s\n' "$status" "$name" "$seconds" "$summary" |
    tee "$out/checks/$name.line"
  printf '{"name": "%s", "status": "%s", "seconds": %s, "summary": %s, "figures": [%s]}\n' \
    "$name" "$status" "$seconds" "$(quoted "$summary")" "$figures" >"$out/checks/$name.part"
  mv "$out/checks/$name.part" "$out/checks/$name.json"
  write_report
}

# has_passed NAME
has_passed() { grep -aq '^{"name": "[a-z0-9_]*", "status": "passed"' "$out/checks/$1.json" 2>/dev/null; }

# done_checks: the names of the checks that have a result, in their order.
done_checks() {
  local name
  while IFS='|' read -r name _; do
    [ ! -f "$out/checks/$name.json" ] || printf '%s\n' "$name"
  done <<<"$checks"
}

# write_report: report.txt and report.json of the checks that are done.
write_report() {
  local name comma=''
  {
    cat "$here/version" 2>/dev/null
    echo "$device"
    echo
    for name in $(done_checks); do cat "$out/checks/$name.line"; done
    for name in $(done_checks); do
      printf '\n=== %s\n' "$name"
      tail -n 60 "$out/logs/$name.log" | cut -c 1-400
    done
  } >"$out/report.txt.part"
  {
    printf '{"version": %s,\n "device": %s,\n "checks": [\n' \
      "$(quoted "$(cat "$here/version" 2>/dev/null)")" "$(quoted "$device")"
    for name in $(done_checks); do
      printf '%s  ' "$comma"
      tr -d '\n' <"$out/checks/$name.json"
      comma=$',\n'
    done
    printf '\n ]}\n'
  } >"$out/report.json.part"
  mv "$out/report.txt.part" "$out/report.txt"
  mv "$out/report.json.part" "$out/report.json"
}

# run NAME LIMIT
run() {
  local name=$1 limit=$2 left start status log=$out/logs/$1.log word
  start=$(date +%s)
  left=$((begun + minutes * 60 - start))
  if [ "$left" -lt 5 ]; then
    echo "no time left" >"$log"
    record "$name" skipped 0
    return
  fi
  [ "$limit" -le "$left" ] || limit=$left
  # In a process group of its own, so that the whole group can be killed.
  (
    cd "$work" || exit 1
    "check_$name"
  ) >"$log" 2>&1 &
  wait_for $! "$limit"
  status=$?
  case $status in
    0) word=passed ;;
    77) word=skipped ;;
    124) word=timeout ;;
    *) word=failed ;;
  esac
  [ $word != failed ] || echo "exit status $status" >>"$log"
  [ $word != timeout ] || echo "stopped after $limit s" >>"$log"
  record "$name" "$word" $(($(date +%s) - start))
}

# wait_for PID SECONDS: returns its exit status, or 124 after killing its process group.
wait_for() {
  local pid=$1 end=$(($(date +%s) + $2))
  while kill -0 "$pid" 2>/dev/null; do
    if [ "$(date +%s)" -ge "$end" ]; then
      kill -TERM -- "-$pid" 2>/dev/null
      sleep 2
      kill -KILL -- "-$pid" 2>/dev/null
      wait "$pid" 2>/dev/null
      return 124
    fi
    sleep 0.2
  done
  wait "$pid"
}

wanted() { [ -z "$only" ] || [[ ",$only," == *",$1,"* ]]; }

for name in ${only//,/ }; do
  [[ $'\n'"$checks" == *$'\n'"$name|"* ]] || bad_usage "--only: there is no check \"$name\""
done

if [[ $device != *"driver for CUDA"* ]]; then
  {
    echo "no CUDA device: ${device:-lockstep doctor says nothing of CUDA}"
    echo "With one, these are run (seconds at most):"
    while IFS='|' read -r name limit shows; do
      printf '  %-17s %4s  %s\n' "$name" "$limit" "$shows"
    done <<<"$checks"
  } >"$work/told"
  cat "$work/told"
  # A report that was begun with a device is left as it is.
  if [ ! -d "$out/checks" ]; then
    cp "$work/told" "$out/report.txt"
    printf '{"device": null, "reason": %s, "checks": []}\n' "$(quoted "$device")" >"$out/report.json"
  fi
  exit 3
fi

# Results of another bundle, or of another GPU, do not belong into this report.
made_by="$(cat "$here/version" 2>/dev/null) $device"
if [ -n "$resume" ] && [ -d "$out/checks" ] && [ "$(cat "$out/checks/made_by" 2>/dev/null)" != "$made_by" ]; then
  echo "run.sh: the results in $out are of another bundle or GPU: all checks are run again" >&2
  resume=''
fi
[ -n "$resume" ] || rm -rf "$out/checks" "$out/logs"
mkdir -p "$out/checks" "$out/logs"
printf '%s\n' "$made_by" >"$out/checks/made_by"

set -m # each check is a process group
# The shell reports killed groups on stderr, which is redirected.
while IFS='|' read -r name limit _ <&3; do
  if ! wanted "$name"; then continue; fi
  if [ -n "$resume" ] && has_passed "$name"; then
    echo "kept       $name"
    continue
  fi
  rm -f "$out/checks/$name.json"
  run "$name" "$limit"
done 3<<<"$checks" 2>"$work/told"
set +m

write_report
tar -C "$out" -czf "$out/logs.tar.gz" logs
echo "report: $out/report.txt, $out/report.json, $out/logs.tar.gz"
! grep -aqE '^\{"name": "[a-z0-9_]*", "status": "(failed|timeout)"' "$out"/checks/*.json
