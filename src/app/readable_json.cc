#include "app/readable_json.h"

#include <algorithm>

#include "app/readable.h"

namespace braid {
namespace {

constexpr std::size_t kLongest = 100'000;  // bytes of a value that are shown

bool is_line(const OrderedJson& value) {
  const auto is_simple = [](const OrderedJson& item) { return !item.is_structured(); };
  return is_simple(value) ||
         (value.is_array() && std::all_of(value.begin(), value.end(), is_simple));
}

std::string text_of_value(const std::string& key, const OrderedJson& value) {
  if (value.is_string()) return one_line(value.get<std::string>(), kLongest);
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_null()) return "none";
  if (value.is_array()) {
    std::string list;
    for (const auto& item : value) list += (list.empty() ? "" : ", ") + text_of_value(key, item);
    return list.empty() ? "none" : list;
  }
  if (value.is_number() && key.ends_with("bytes")) return readable_bytes(value.get<double>());
  if (value.is_number_integer() && key == "parameters")
    return readable_count(value.get<std::int64_t>());
  return value.dump();
}

void write(const OrderedJson& object, std::size_t indent, std::string& out) {
  std::size_t width = 0;
  for (const auto& [key, value] : object.items())
    if (is_line(value)) width = std::max(width, key.size());
  for (const auto& [key, value] : object.items()) {
    auto line = std::string(indent, ' ') + one_line(key);
    if (is_line(value)) {
      line.resize(std::max(line.size(), indent + width), ' ');
      out += line + "  " + text_of_value(key, value) + "\n";
    } else {
      out += line + "\n";
      write(value, indent + 2, out);
    }
  }
}

}  // namespace

std::string readable_json(const OrderedJson& object) {
  std::string out;
  write(object, 0, out);
  return out;
}

std::string json_text(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace braid
