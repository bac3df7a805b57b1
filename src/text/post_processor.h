// The post-processors of tokenizer.json: what is added around the tokens of a text.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace braid::text {

struct Frame {
  std::vector<std::int64_t> before, after;

  std::int64_t size() const { return std::int64_t(before.size() + after.size()); }
};

// `json`: the object under "post_processor", or null. Knows TemplateProcessing, RobertaProcessing,
// BertProcessing, ByteLevel and Sequence. Throws InputError naming `source` and the unknown or
// malformed type.
Frame read_post_processor(const nlohmann::json& json, const std::string& source);

}  // namespace braid::text
