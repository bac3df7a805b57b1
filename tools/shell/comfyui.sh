# ./check --comfyui: Braid's nodes in a checkout of ComfyUI. Sourced.

# Stops unless BRAID_COMFYUI names a checkout: none of its code is here.
require_comfyui() {
  [[ -e ${BRAID_COMFYUI:-}/main.py && -e ${BRAID_COMFYUI:-}/requirements.txt ]] ||
    stop 2 "--comfyui should be given with BRAID_COMFYUI=DIR, a checkout of ComfyUI"
}

# Sets `comfy_python`, which has what the checkout requires (several GB from PyPI).
prepare_comfyui() {
  local venv=$cache/comfyui sum
  comfy_python=$venv/bin/python
  sum=$(cksum <"$BRAID_COMFYUI/requirements.txt")
  [[ "$(cat "$venv/complete" 2>/dev/null)" != "$sum" ]] || return 0
  say "installing what ComfyUI requires into $venv (once)"
  [[ -x $comfy_python ]] || python3 -m venv "$venv" || stop 1 "python3 cannot make a virtual environment"
  "$comfy_python" -m pip install -q --disable-pip-version-check -r "$BRAID_COMFYUI/requirements.txt" ||
    stop 1 "what ComfyUI requires could not be installed into $venv"
  echo "$sum" >"$venv/complete"
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
