#include "pipeline/families/flux3/boxes.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json.h"

namespace braid {
namespace {

constexpr double kCanvas = 1000;
constexpr std::size_t kMostRows = 1000;
const std::string kReferenceName = "ref_image_";
const std::string kField = "`boxes`";  // of Request; programs say what their users call it

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_id(const std::string& text) {
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

// A row being read; `name` says which in messages.
struct BoxRow {
  const Json& json;
  std::string name;

  bool has(const char* key) const { return json.contains(key) && !json.at(key).is_null(); }
  const Json& at(const char* key) const {
    require(json.contains(key), name, " has no '", key, "'");
    return json.at(key);
  }
  std::string text(const char* key) const {
    const auto& value = at(key);
    require(value.is_string(), name, ": '", key, "' should be text, it is ", value.dump());
    return value.get<std::string>();
  }
  void allow_only(const std::set<std::string>& keys) const {
    for (const auto& [key, value] : json.items())
      require(keys.contains(key), name, " has an unknown field '", key, "'");
  }
};

std::string quoted(const std::string& text) { return Json(text).dump(); }

// Halves are rounded to even, as by Python's round().
std::string text_of_box(const BoxRow& row, const char* key) {
  const auto& box = row.at(key);
  const bool has_four =
      box.is_array() && box.size() == 4 &&
      std::all_of(box.begin(), box.end(), [](const Json& x) { return x.is_number(); });
  require(has_four, row.name, ": '", key, "' should be [y_min, x_min, y_max, x_max], it is ",
          box.dump());
  std::vector<double> sides = box.get<std::vector<double>>();
  const auto largest = *std::max_element(sides.begin(), sides.end());
  const auto least = *std::min_element(sides.begin(), sides.end());
  require(least >= 0 && largest <= kCanvas, row.name, ": '", key,
          "' should lie between 0 and 1000, it is ", box.dump());
  const bool is_fraction = largest <= 1;
  std::string text;
  for (auto& side : sides) {
    if (is_fraction) side = std::nearbyint(side * kCanvas);
    require(side == std::floor(side), row.name, ": '", key,
            "' should hold whole numbers from 0 to 1000 or fractions from 0 to 1, it is ",
            box.dump());
    text += (text.empty() ? "[" : ", ") + std::to_string(int(side));
  }
  require(sides[0] < sides[2] && sides[1] < sides[3], row.name, ": '", key,
          "' should end below and right of where it begins, it is ", box.dump());
  return text + "]";
}

// The number of "ref_image_0"; nothing for other names.
std::optional<int> reference_number(const std::string& name) {
  const auto number = name.starts_with(kReferenceName) ? name.substr(kReferenceName.size()) : "";
  const bool is_number =
      !number.empty() && number.size() < 4 && std::all_of(number.begin(), number.end(), is_digit);
  return is_number ? std::optional(std::stoi(number)) : std::nullopt;
}

void check_origin(const BoxRow& row, const std::string& from, int num_references) {
  if (from == "target") return;
  const auto number = reference_number(from);
  require(number.has_value(), row.name, ": 'from' should be target or ", kReferenceName, "0, ",
          kReferenceName, "1, ..., it is ", from);
  require(*number < num_references, row.name, " is from ", from, ", there ",
          num_references == 1 ? "is 1 reference" : text_of("are ", num_references, " references"));
}

// A box that is left out is null, as in the reference.
std::string text_of_edit(const BoxRow& row, int num_references) {
  row.allow_only({"id", "from", "bbox", "src_bbox", "tgt_bbox", "desc"});
  require(row.has("from") || row.has("src_bbox") || row.has("tgt_bbox"), row.name,
          " has no 'bbox'");
  const auto from = row.text("from");
  check_origin(row, from, num_references);
  const auto box = [&](const char* key) { return row.has(key) ? text_of_box(row, key) : "null"; };
  const auto source = box("src_bbox"), target = box("tgt_bbox");
  require((from == "target") == (source == "null"), row.name, ": 'src_bbox' should ",
          from == "target" ? "be null, as it is new in the picture" : "be a box in the reference",
          ", it is ", source);
  require(source != "null" || target != "null", row.name, " has no box");
  return ", \"from\": " + quoted(from) + ", \"src_bbox\": " + source + ", \"tgt_bbox\": " + target;
}

std::string text_of_row(const BoxRow& row, const std::string& id, int num_references) {
  std::string text = "{\"id\": " + quoted(id);
  if (row.has("bbox")) {
    row.allow_only({"id", "bbox", "desc"});
    text += ", \"bbox\": " + text_of_box(row, "bbox");
  } else {
    text += text_of_edit(row, num_references);
  }
  return text + ", \"desc\": " + quoted(row.text("desc")) + "}";
}

// Elements <id> in the order of the text. What also ends, as <b>bold</b>, is markup.
std::vector<std::string> cited_in(const std::string& prompt) {
  std::vector<std::string> ids;
  for (auto at = prompt.find('<'); at != prompt.npos; at = prompt.find('<', at + 1)) {
    const auto end = prompt.find('>', at);
    if (end == prompt.npos) break;
    const auto id = prompt.substr(at + 1, end - at - 1);
    if (is_id(id) && prompt.find("</" + id + ">", end) == prompt.npos) ids.push_back(id);
  }
  return ids;
}

}  // namespace

std::string with_boxes(const std::string& prompt, const std::string& boxes, int num_references) {
  const auto rows = parse_json(boxes, kField);
  require(rows.is_array() && !rows.empty() && rows.size() <= kMostRows, kField,
          " should be a JSON array of 1 to ", kMostRows, " rows");
  std::set<std::string> ids;
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto name = text_of(kField, ": box ", i + 1);
    require(rows[i].is_object(), name, " should be an object, it is ", rows[i].dump());
    const auto id = BoxRow{rows[i], name}.text("id");
    require(is_id(id), name, ": 'id' should be a letter, then letters, digits and underscores, ",
            "it is ", quoted(id));
    require(ids.insert(id).second, kField, ": two boxes have the id ", id);
    text += (i == 0 ? "[" : ", ") +
            text_of_row({rows[i], text_of(name, " (", id, ")")}, id, num_references);
  }
  const auto is_reference = [&](const std::string& id) {
    return reference_number(id).value_or(num_references) < num_references;
  };
  for (const auto& id : cited_in(prompt))
    require(ids.contains(id) || is_reference(id), "the prompt cites <", id,
            ">, of which there is no box");
  return prompt + " " + text + "]";
}

}  // namespace braid
