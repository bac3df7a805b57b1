# How many compilers may run at a time. Sourced; starts awk and nproc only.

# lower VARIABLE NUMBER: sets VARIABLE to NUMBER if that is less, or the first. "max" and -1 are no numbers.
lower() { [[ ! $2 =~ ^[0-9]+$ ]] || ((${!1:-$2} < $2)) || printf -v "$1" %s "$2"; }

# read_word FILE: its first word; nothing if there is no such file.
read_word() {
  local word=
  [[ ! -r $1 ]] || read -r word <"$1" || true
  echo "$word"
}

# add_memory FOLDER LIMIT-FILE USED-FILE CACHED-NAME: lowers `memory` to what the group has left. Files that
# are only cached do not count as used.
add_memory() {
  local limit used cached
  limit=$(read_word "$1/$2")
  [[ $limit =~ ^[0-9]+$ && ${#limit} -lt 19 ]] || return 0
  used=$(read_word "$1/$3")
  cached=$(awk -v name="$4" '$1 == name {print $2}' "$1/memory.stat" 2>/dev/null || true)
  used=$((${used:-0} - ${cached:-0}))
  ((used > 0)) || used=0
  lower memory $((used < limit ? limit - used : 0))
}

# add_cores QUOTA PERIOD: lowers `cores` to their ratio, rounded up.
add_cores() {
  [[ $1 =~ ^[1-9][0-9]*$ && $2 =~ ^[1-9][0-9]*$ ]] || return 0
  lower cores $((($1 + $2 - 1) / $2))
}

# add_group MOUNT NAME VERSION: the limits of a control group and of those above it. A container may see its own
# group as the topmost, under the name it has outside: folders that are missing have no limits.
add_group() {
  local name=$2 folder quota period
  while :; do
    folder=$1$name
    case $3 in
      memory) add_memory "$folder" memory.limit_in_bytes memory.usage_in_bytes total_inactive_file ;;
      cpu) add_cores "$(read_word "$folder/cpu.cfs_quota_us")" "$(read_word "$folder/cpu.cfs_period_us")" ;;
      *)
        add_memory "$folder" memory.max memory.current inactive_file
        quota= period=
        [[ ! -r $folder/cpu.max ]] || read -r quota period <"$folder/cpu.max" || true
        add_cores "$quota" "$period"
        ;;
    esac
    [[ $name == /?* ]] || return 0
    name=${name%/*}
  done
}

# jobs [ROOT [LINE]]: one per core, limited by 1.5 GB of memory each, which a file with ATen.h takes. LINE is the one of
# meminfo that counts. Control groups count as in src/base/control_group.cc.
jobs() {
  local root=${1:-} line=${2:-MemAvailable} cores memory controllers name
  cores=$(nproc)
  memory=$(awk -v name="$line:" '$1 == name {printf "%.0f", $2 * 1024}' "$root/proc/meminfo")
  [[ ! -r $root/proc/self/cgroup ]] || while IFS=: read -r _ controllers name; do
    [[ -n $controllers ]] || add_group "$root/sys/fs/cgroup" "$name" both
    [[ ,$controllers, != *,memory,* ]] || add_group "$root/sys/fs/cgroup/memory" "$name" memory
    [[ ,$controllers, != *,cpu,* ]] || add_group "$root/sys/fs/cgroup/cpu" "$name" cpu
  done <"$root/proc/self/cgroup"
  lower cores $((memory / 1610612736))
  echo $((cores > 1 ? cores : 1))
}
