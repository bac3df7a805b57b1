# ./check --comfyui: Braid's nodes in a checkout of ComfyUI. Sourced.

# Stops unless BRAID_COMFYUI names a checkout: none of its code is here.
require_comfyui() {
  [[ -e ${BRAID_COMFYUI:-}/main.py && -e ${BRAID_COMFYUI:-}/requirements.txt ]] ||
    stop 2 "--comfyui should be given with BRAID_COMFYUI=DIR, a checkout of ComfyUI"
}

# comfy_packages: what the checkout requires of PyPI, without what only a browser shows; and what the tests write files with.
comfy_packages() {
  grep -v -e workflow-templates -e embedded-docs "$BRAID_COMFYUI/requirements.txt"
  echo gguf
}

# share_packages VENV: lets it see what other environments here have, among it several GB of torch; its own come first.
share_packages() {
  local complete
  for complete in "$cache"/comfyui-*/complete "$cache"/parity-*/complete; do
    [[ ! -e $complete ]] || echo "${complete%/complete}"/lib/python3*/site-packages
  done >"$(echo "$1"/lib/python3*/site-packages)/shared.pth"
}

# Sets `comfy_python`, which has what the checkout requires (several GB from PyPI): an environment for each text of requirements.
prepare_comfyui() {
  local venv
  venv=$cache/comfyui-$(cksum <"$BRAID_COMFYUI/requirements.txt" | cut -d' ' -f1)
  comfy_python=$venv/bin/python
  [[ ! -e $venv/complete ]] || ! "$comfy_python" -c "import torch, gguf" 2>/dev/null || return 0
  say "installing what ComfyUI requires into $venv (once)"
  rm -rf "$venv"
  python3 -m venv "$venv" || stop 1 "python3 cannot make a virtual environment"
  share_packages "$venv"
  comfy_packages >"$venv/requirements.txt"
  "$comfy_python" -m pip install -q --disable-pip-version-check -r "$venv/requirements.txt" ||
    stop 1 "what ComfyUI requires could not be installed into $venv"
  touch "$venv/complete"
}

run_comfyui() {
  stage "comfyui"
  local folder=$root/build/python wheel comfy_python
  prepare_comfyui
  make_folder "$folder"
  made_environment "$folder/tools" -r "$root/python/requirements.txt"
  build_wheel
  made_environment "$folder/comfyui" "$wheel"
  "$comfy_python" -B "$root/tools/comfyui/check_nodes.py" "$BRAID_COMFYUI" "$build/bin/braid" \
    "$folder/comfyui/bin/python" || stop 1 "Braid's nodes failed in ComfyUI"
}
