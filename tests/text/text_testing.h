// What the tests of this folder share: fixtures, digests, messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "message_of.h"

namespace braid::testing_text {

// What an InputError says; empty when there is none.
inline std::filesystem::path data(const std::string& name) {
  return std::filesystem::path(BRAID_TEST_DATA) / name;
}

inline std::vector<std::string> lines_of(const std::filesystem::path& path) {
  const auto text = read_file(path);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// The texts that tools/parity/tokenizer_corpus.py makes.
inline std::vector<std::string> corpus() {
  std::vector<std::string> texts;
  for (const auto& line : lines_of(data("corpus.jsonl")))
    texts.push_back(nlohmann::json::parse(line).get<std::string>());
  return texts;
}

// FNV-1a, a number at a time: as dump_tokenizers.py has it.
class Digest {
 public:
  void add(std::uint64_t number) { value_ = (value_ ^ number) * 0x100000001B3; }
  std::string hex() const {
    char out[17];
    std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(value_));
    return out;
  }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325;
};

}  // namespace braid::testing_text
