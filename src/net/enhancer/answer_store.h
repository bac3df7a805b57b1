// Answers of enhancers that were asked before: they are slow, and the same command should make the
// same picture.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace braid::net {

// Keys are file names. Any thread may call these; neither throws: without a store a question is
// asked again.
struct AnswerStore {
  std::function<std::optional<std::string>(const std::string& key)> find = {};
  std::function<void(const std::string& key, const std::string& answer)> keep = {};
};

// One file each, for the user alone, written at once. Beyond `most` files those make room that were
// used longest ago. An empty folder keeps nothing.
AnswerStore answers_in_folder(const std::filesystem::path& folder, std::size_t most = 1000);

// The newest `most` of this process.
AnswerStore answers_in_memory(std::size_t most = 256);

// XDG_CACHE_HOME/braid/enhanced, or ~/.cache/braid/enhanced; empty without a home.
std::filesystem::path answer_folder();

}  // namespace braid::net
