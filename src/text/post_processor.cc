#include "text/post_processor.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "text/vocabulary/vocabulary.h"

namespace braid::text {
namespace {

std::vector<std::int64_t> ids_of_special(const Json& piece, const JsonObject& owner) {
  const auto name = JsonObject(piece, owner.source()).string("id");
  const JsonObject tokens(owner.at("special_tokens"), owner.source());
  const JsonObject token(tokens.at(name), owner.source());
  require(token.has("ids"), owner.source(), " has a template token '", name, "' without 'ids'");
  return token.integers_or("ids", {}, 0, kLargestTokenId);
}

// [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}, ...]
Frame read_template(const JsonObject& json) {
  const auto& pieces = json.at("single");
  require(pieces.is_array(), json.source(), ": 'single' should be a list, it is ",
          pieces.type_name());
  Frame frame;
  bool seen_text = false;
  for (const auto& item : pieces) {
    const JsonObject piece(item, json.source());
    if (piece.has("Sequence")) {
      const bool is_text =
          JsonObject(piece.at("Sequence"), json.source()).string("id") == "A" && !seen_text;
      require(is_text, json.source(), " has a template that does not hold the text just once");
      seen_text = true;
      continue;
    }
    const auto ids = ids_of_special(piece.at("SpecialToken"), json);
    auto& side = seen_text ? frame.after : frame.before;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  require(seen_text, json.source(), " has a template without the text");
  return frame;
}

std::int64_t read_pair(const JsonObject& json, const char* key) {
  const auto& pair = json.at(key);
  const bool is_pair = pair.is_array() && pair.size() == 2 && pair[1].is_number_unsigned() &&
                       pair[1].get<std::uint64_t>() <= std::uint64_t(kLargestTokenId);
  require(is_pair, json.source(), ": '", key, "' should be a token and its id, it is ",
          pair.dump());
  return pair[1].get<std::int64_t>();
}

Frame read_post_processors(const JsonObject& json) {
  const auto& list = json.at("processors");
  require(list.is_array(), json.source(), ": 'processors' should be a list, it is ",
          list.type_name());
  Frame frame;
  for (const auto& step : list) {
    const auto outer = read_post_processor(step, json.source());
    frame.before.insert(frame.before.begin(), outer.before.begin(), outer.before.end());
    frame.after.insert(frame.after.end(), outer.after.begin(), outer.after.end());
  }
  return frame;
}

}  // namespace

Frame read_post_processor(const nlohmann::json& json, const std::string& source) {
  if (json.is_null()) return {};
  const JsonObject object(json, source);
  const auto type = object.string("type");
  if (type == "ByteLevel") return {};  // moves offsets only
  if (type == "TemplateProcessing") return read_template(object);
  if (type == "RobertaProcessing" || type == "BertProcessing")
    return {{read_pair(object, "cls")}, {read_pair(object, "sep")}};
  if (type == "Sequence") return read_post_processors(object);
  throw InputError(
      text_of(source, " asks for the post-processor '", type, "', which is not supported"));
}

}  // namespace braid::text
