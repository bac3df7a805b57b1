// Where the hub of models is, and as whom it is asked: what huggingface_hub reads from the
// environment.
#pragma once

#include <filesystem>
#include <string>

namespace braid::net {

struct HubAccess {
  std::string endpoint = "https://huggingface.co";  // HF_ENDPOINT; without a slash at the end
  // HF_TOKEN, else the file at HF_TOKEN_PATH, HF_HOME/token or ~/.cache/huggingface/token. Never
  // printed. Empty: none, or HF_HUB_DISABLE_IMPLICIT_TOKEN is set.
  std::string token = {};
  std::string token_source = {};     // for sentences: "HF_TOKEN", or the file
  std::string offline_by = {};       // the variable that forbids the network; empty: none
  std::filesystem::path cache = {};  // hub_cache()
};

// Throws InputError naming the variable or file that is not usable.
HubAccess hub_access();

}  // namespace braid::net
