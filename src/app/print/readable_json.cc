#include "app/print/readable_json.h"

#include <algorithm>

#include "app/words/readable.h"

namespace braid {
namespace {

constexpr std::size_t kLongest = 100'000;  // longest value shown, in bytes
constexpr std::size_t kColumns = 100;      // lists are wrapped here

bool is_line(const OrderedJson& value) {
  const auto is_simple = [](const OrderedJson& item) { return !item.is_structured(); };
  return is_simple(value) ||
         (value.is_array() && std::all_of(value.begin(), value.end(), is_simple));
}

std::string text_of_value(const std::string& key, const OrderedJson& value) {
  if (value.is_string()) return one_line(value.get<std::string>(), kLongest);
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_null()) return "none";
  if (value.is_number() && key.ends_with("bytes")) return readable_bytes(value.get<double>());
  if (value.is_number_integer() && key == "parameters")
    return readable_count(value.get<std::int64_t>());
  return value.dump();
}

// "a, b, c", wrapped so that text starting at `column` stays within the page.
std::string text_of_list(const std::string& key, const OrderedJson& list, std::size_t column) {
  std::string text;
  auto end = column;  // of the last line
  for (const auto& value : list) {
    const auto item = text_of_value(key, value);
    const bool fits = text.empty() || end + 2 + item.size() < kColumns;
    if (!text.empty()) text += fits ? ", " : ",\n" + std::string(column, ' ');
    end = (fits ? end + 2 : column) + item.size();
    text += item;
  }
  return text.empty() ? "none" : text;
}

void write(const OrderedJson& object, std::size_t indent, std::string& out) {
  std::size_t width = 0;
  for (const auto& [key, value] : object.items())
    if (is_line(value)) width = std::max(width, key.size());
  for (const auto& [key, value] : object.items()) {
    auto line = std::string(indent, ' ') + one_line(key);
    if (is_line(value)) {
      line.resize(std::max(line.size(), indent + width), ' ');
      line += "  ";
      const auto text =
          value.is_array() ? text_of_list(key, value, line.size()) : text_of_value(key, value);
      out += line + text + "\n";
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

std::string indented_json(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace braid
