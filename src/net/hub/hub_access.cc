#include "net/hub/hub_access.h"

#include <algorithm>
#include <cstdlib>

#include "base/ascii.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hub_cache.h"
#include "net/http/web_client.h"

namespace braid::net {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const auto* const value = std::getenv(name);
  return value ? value : "";
}

// huggingface_hub reads its switches this way.
bool is_on(const char* name) {
  const auto value = ascii_lower_case(environment(name));
  return value == "1" || value == "on" || value == "yes" || value == "true";
}

std::string without_spaces(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// A header's value: a line end in it would begin another header.
std::string checked_token(const std::string& text, const std::string& source) {
  auto token = without_spaces(text);
  const bool is_plain =
      std::all_of(token.begin(), token.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
  require(is_plain, "the token in ", source, " has spaces or other characters that no token has");
  return token;
}

fs::path token_file() {
  if (const auto path = environment("HF_TOKEN_PATH"); !path.empty()) return expanded_path(path);
  return hub_home() / "token";
}

}  // namespace

HubAccess hub_access() {
  HubAccess access{.cache = hub_cache()};
  if (auto endpoint = environment("HF_ENDPOINT"); !endpoint.empty()) {
    require_web_address("HF_ENDPOINT", endpoint);
    while (endpoint.ends_with('/')) endpoint.pop_back();
    access.endpoint = endpoint;
  }
  for (const char* const name : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"})
    if (access.offline_by.empty() && is_on(name)) access.offline_by = name;
  if (is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return access;
  for (const char* const name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (access.token.empty()) {
      access.token = checked_token(environment(name), name);
      access.token_source = name;
    }
  const auto file = token_file();
  if (access.token.empty() && is_file(file)) {
    constexpr std::uint64_t kLongestToken = 4096;
    access.token_source = file.string();
    access.token = checked_token(read_file(file, kLongestToken), access.token_source);
  }
  if (access.token.empty()) access.token_source.clear();
  return access;
}

}  // namespace braid::net
