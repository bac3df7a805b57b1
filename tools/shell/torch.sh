# Chooses the LibTorch and the build folder for it. Sourced; starts no process by itself.

# An empty or relative XDG_CACHE_HOME does not count, says its specification.
cache=~/.cache/braid
[[ ${XDG_CACHE_HOME:-} != /* ]] || cache=$XDG_CACHE_HOME/braid

# Sets `torch` to the folder with lib/ and include/, and `build` to the build folder for it.
#   BRAID_TORCH unset     the cached copy that cmake/libtorch.txt names
#   BRAID_TORCH=python    the torch of the active Python
#   BRAID_TORCH=DIR       an unpacked libtorch, or a folder that contains torch/
choose_torch() {
  local LC_ALL=C # or a build folder would have another name in another locale
  if [[ -z ${BRAID_TORCH:-} ]]; then
    [[ $(<"$root/cmake/libtorch.txt") =~ torch==([0-9.]+) ]]
    torch=$cache/libtorch/${BASH_REMATCH[1]}/torch
    build=$root/build/release
    return
  fi
  torch=$BRAID_TORCH
  [[ $torch != python ]] || torch=$(python3 -c 'import importlib.util as u
print(u.find_spec("torch").submodule_search_locations[0])' 2>/dev/null) ||
    stop 2 "BRAID_TORCH=python, but python3 ($(command -v python3 || echo none)) has no torch"
  [[ ! -d $torch/torch/lib ]] || torch=$torch/torch
  [[ -e $torch/lib/libtorch_cpu.so && -e $torch/share/cmake/Torch/TorchConfigVersion.cmake ]] ||
    stop 2 "BRAID_TORCH=$BRAID_TORCH should name an unpacked libtorch, a folder with torch/ in it," \
      "or be 'python'; it has no lib/libtorch_cpu.so"
  torch=$(cd -- "$torch" && pwd -P)
  require_torch_version
  build=$root/build/release${torch//[^A-Za-z0-9._]/-}
}

# Stops if the chosen LibTorch is older than CMakeLists.txt requires.
require_torch_version() {
  local version=
  local -a wanted
  [[ $(<"$root/CMakeLists.txt") =~ find_package\(LibTorch\ ([0-9]+)\.([0-9]+) ]] ||
    stop 2 "$root/CMakeLists.txt names no LibTorch"
  wanted=("${BASH_REMATCH[@]:1}")
  [[ $(<"$torch/share/cmake/Torch/TorchConfigVersion.cmake") =~ PACKAGE_VERSION\ \"([0-9]+)\.([0-9]+)[^\"]* ]] || return 0
  version=${BASH_REMATCH[0]#*\"}
  ((BASH_REMATCH[1] * 1000 + BASH_REMATCH[2] >= wanted[0] * 1000 + wanted[1])) ||
    stop 2 "BRAID_TORCH=$BRAID_TORCH is LibTorch $version, but $(IFS=. && echo "${wanted[*]}") or later is needed"
}

# Prints cuda, hip or nothing: the backend of the chosen LibTorch.
torch_gpu() {
  local gpu
  for gpu in cuda hip; do
    [[ ! -e $torch/lib/libtorch_$gpu.so ]] || echo $gpu
  done
}
