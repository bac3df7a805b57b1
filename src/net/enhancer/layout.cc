// Follows the functions split, valid_added and reconcile of FLUX.3's bbox.py, in
// diffusers.modular_pipelines.flux3.prompt_upsampler.
#include "net/enhancer/layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "net/enhancer/space.h"

namespace braid::net {
namespace {

constexpr double kCanvas = 1000, kSameBox = 0.9;
constexpr int kMostBrackets = 2000;  // that are tried

using Box = std::array<double, 4>;  // top, left, bottom, right

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_id(const std::string& text) {
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

std::string text_in(const Json& row, const char* name) {
  const auto it = row.find(name);
  return it != row.end() && it->is_string() ? it->get<std::string>() : "";
}

bool has_box(const Json& row, const char* name) {
  return row.contains(name) && !row.at(name).is_null();
}

std::optional<Box> four_numbers(const Json& row, const char* name) {
  if (!has_box(row, name) || !row.at(name).is_array() || row.at(name).size() != 4) return {};
  Box box{};
  for (std::size_t i = 0; i < 4; ++i) {
    if (!row.at(name)[i].is_number()) return {};
    box[i] = row.at(name)[i].get<double>();
  }
  return box;
}

// All of a box up to 1 would be fractions of another canvas.
std::optional<Box> canvas_box(const Json& row, const char* name) {
  const auto box = four_numbers(row, name);
  if (!box) return {};
  const auto& [top, left, bottom, right] = *box;
  const bool lies_inside = top >= 0 && left >= 0 && bottom <= kCanvas && right <= kCanvas;
  const bool has_area = bottom > top && right > left && std::ranges::max(*box) > 1;
  return lies_inside && has_area ? box : std::nullopt;
}

std::optional<Box> first_box(const Json& row) {
  for (const char* const name : {"bbox", "tgt_bbox", "src_bbox"})
    if (has_box(row, name)) return canvas_box(row, name);
  return {};
}

double overlap(const Box& a, const Box& b) {
  const auto area = [](const Box& x) { return (x[2] - x[0]) * (x[3] - x[1]); };
  const double height = std::max(0.0, std::min(a[2], b[2]) - std::max(a[0], b[0]));
  const double width = std::max(0.0, std::min(a[3], b[3]) - std::max(a[1], b[1]));
  const double both = height * width, either = area(a) + area(b) - both;
  return either > 0 ? both / either : 0;
}

std::string python_text(std::string_view text) { return json_line(Json(text)); }

// Enhancers may answer with fractions of a pixel of the canvas.
std::string spelled(const Json& row, const char* name) {
  if (!has_box(row, name)) return "null";
  std::string text;
  for (const auto& side : row.at(name))
    text += (text.empty() ? "[" : ", ") + std::to_string(std::lround(side.get<double>()));
  return text + "]";
}

// Spells a row as Python's json.dumps does.
std::string spelled(const Json& row) {
  auto text = "{\"id\": " + python_text(text_in(row, "id"));
  if (has_box(row, "bbox")) {
    text += ", \"bbox\": " + spelled(row, "bbox");
  } else {
    text += ", \"from\": " + python_text(text_in(row, "from")) +
            ", \"src_bbox\": " + spelled(row, "src_bbox") +
            ", \"tgt_bbox\": " + spelled(row, "tgt_bbox");
  }
  return text + ", \"desc\": " + python_text(without_space(text_in(row, "desc"))) + "}";
}

std::string spelled(const std::vector<Json>& rows) {
  std::string text;
  for (const auto& row : rows) text += (text.empty() ? "[" : ", ") + spelled(row);
  return text.empty() ? "[]" : text + "]";
}

// Halves are rounded to even, as by Python's round().
void scale_to_canvas(Json& row, const char* name, const std::string& which) {
  if (!has_box(row, name)) return;
  auto box = four_numbers(row, name);
  require(box.has_value(), which, ": '", name, "' should be [y_min, x_min, y_max, x_max]");
  const bool is_fraction = std::ranges::max(*box) <= 1;
  for (auto& side : *box) side = is_fraction ? std::nearbyint(side * kCanvas) : side;
  row[name] = *box;
}

// The caption, and the rows of the JSON list that closes the text, if any.
struct Split {
  std::string caption;
  std::vector<Json> rows = {};
};

Split split(const std::string& text) {
  auto begin = text.rfind('[');
  for (int tried = 0; begin != text.npos && tried < kMostBrackets; ++tried) {
    try {
      const auto list = parse_json(std::string_view(text).substr(begin), "the rows");
      Split split{.caption = std::string(without_space(std::string_view(text).substr(0, begin)))};
      for (const auto& row : list)
        if (row.is_object()) split.rows.push_back(row);
      return split;
    } catch (const InputError&) {  // a bracket of something else, or within a row
    }
    begin = begin == 0 ? text.npos : text.rfind('[', begin - 1);
  }
  return {.caption = text};
}

void replace_all(std::string& text, const std::string& old, const std::string& with) {
  for (auto at = text.find(old); at != text.npos; at = text.find(old, at + with.size()))
    text.replace(at, old.size(), with);
}

// The names under which the enhancer planned locked boxes anew, and theirs.
std::map<std::string, std::string> renamed_rows(const std::vector<Json>& rows, const Json& locked) {
  std::set<std::string> ids, locked_ids;
  for (const auto& row : rows) ids.insert(text_in(row, "id"));
  for (const auto& row : locked) locked_ids.insert(text_in(row, "id"));
  std::map<std::string, std::string> renamed;
  for (const auto& lock : locked) {
    const auto place = first_box(lock);
    if (!place || ids.contains(text_in(lock, "id"))) continue;
    for (const auto& row : rows) {
      const auto id = text_in(row, "id");
      const auto box = first_box(row);
      const bool is_free = !renamed.contains(id) && !locked_ids.contains(id);
      if (!is_free || !box || overlap(*box, *place) < kSameBox) continue;
      renamed[id] = text_in(lock, "id");
      break;
    }
  }
  return renamed;
}

}  // namespace

std::string rows_on_canvas(const std::string& boxes) {
  const auto rows = parse_json(boxes, "`boxes`");
  require(rows.is_array() && !rows.empty(), "`boxes` should be a JSON array of rows");
  std::vector<Json> scaled;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto which = text_of("`boxes`: box ", i + 1);
    require(rows[i].is_object() && is_id(text_in(rows[i], "id")), which,
            ": 'id' should be a letter, then letters, digits and underscores");
    scaled.push_back(rows[i]);
    for (const char* const name : {"bbox", "src_bbox", "tgt_bbox"})
      scale_to_canvas(scaled.back(), name, which);
  }
  return spelled(scaled);
}

bool is_planned_row(const Json& row) {
  if (!row.is_object() || !is_id(text_in(row, "id"))) return false;
  if (without_space(text_in(row, "desc")).empty()) return false;
  if (has_box(row, "bbox")) return canvas_box(row, "bbox").has_value();
  const auto source = canvas_box(row, "src_bbox"), target = canvas_box(row, "tgt_bbox");
  const auto from = text_in(row, "from");
  constexpr std::string_view kReference = "ref_image_";
  const auto number = from.starts_with(kReference) ? from.substr(kReference.size()) : "";
  const bool is_reference = !number.empty() && std::ranges::all_of(number, is_digit);
  const bool are_boxes = bool(source) == has_box(row, "src_bbox") &&
                         bool(target) == has_box(row, "tgt_bbox") && (source || target);
  return are_boxes && (is_reference ? source.has_value() : from == "target" && !source);
}

LaidOutCaption with_locked_rows(const std::string& answer, const std::string& locked) {
  auto [caption, rows] = split(answer);
  const auto locks = parse_json(locked, "the boxes");
  for (const auto& [old, id] : renamed_rows(rows, locks)) {
    replace_all(caption, "<" + old + ">", "<" + id + ">");
    for (auto& row : rows)
      if (text_in(row, "id") == old) row["id"] = id;
  }
  std::map<std::string, std::string> described;
  for (const auto& row : rows) described[text_in(row, "id")] = text_in(row, "desc");
  std::vector<Json> all;
  std::set<std::string> ids;
  for (auto lock : locks) {
    const auto& words = described[text_in(lock, "id")];
    if (!without_space(words).empty()) lock["desc"] = words;
    ids.insert(text_in(lock, "id"));
    all.push_back(std::move(lock));
  }
  for (auto& row : rows) {
    if (!canvas_box(row, "bbox")) row.erase("bbox");  // what is left may be an edit
    const auto id = text_in(row, "id");
    const bool is_cited = caption.find("<" + id + ">") != caption.npos;
    if (is_cited && is_planned_row(row) && ids.insert(id).second) all.push_back(row);
  }
  return {.caption = caption, .rows = spelled(all)};
}

}  // namespace braid::net
