#include "serve/body/form_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "serve/api_error.h"

namespace braid::serve {
namespace {

constexpr std::size_t kLongestQuoted = 100;
constexpr std::size_t kMostDigits = 6;  // of an element's number
constexpr int kNoNumber = -1;

[[noreturn]] void refuse_twice(const std::string& name) {
  const auto shown = name.substr(0, kLongestQuoted);
  throw ApiError(400, "the field '" + shown + "' appears twice", "invalid_multipart", shown);
}

// A file without a name and a type cannot be told from text.
void check_text(const Part& part) {
  if (!is_valid_utf8(part.name + part.file))
    throw ApiError(400, "the form has a name that is not UTF-8", "invalid_multipart");
  if (part.is_file || is_valid_utf8(part.bytes)) return;
  const auto shown = part.name.substr(0, kLongestQuoted);
  throw ApiError(400,
                 "'" + shown +
                     "' should be text in UTF-8, or a file with a file name or a content "
                     "type such as image/png: it is neither",
                 "invalid_multipart", shown);
}

// The name of an element of a list: "lora[2][scale]" is "lora", 2 and "[scale]".
struct ElementName {
  std::string list;
  int number = kNoNumber;  // of "[]"
  std::string rest;
};

// Nothing if the name is no element's, as in "svg[model]".
std::optional<ElementName> element_name(const std::string& name) {
  const auto open = name.find('['), close = name.find(']', open);
  if (open == name.npos || close == name.npos) return {};
  const auto digits = name.substr(open + 1, close - open - 1);
  const bool is_number = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number || digits.size() > kMostDigits) return {};
  return ElementName{.list = name.substr(0, open),
                     .number = digits.empty() ? kNoNumber : std::stoi(digits),
                     .rest = name.substr(close + 1)};
}

int number_in(const Part* part) {
  const auto element = element_name(part->name);
  return element ? element->number : kNoNumber;
}

// Elements with numbers come in their order, behind those without.
std::vector<const Part*> in_order(const std::vector<Part>& form) {
  std::vector<const Part*> parts;
  for (const auto& part : form) parts.push_back(&part);
  std::ranges::stable_sort(parts, {}, number_in);
  return parts;
}

class FormReader {
 public:
  void add(const Part& part);
  FormFields fields() && { return std::move(fields_); }

 private:
  void add_file(const Part& part, const std::optional<ElementName>& element);
  void add_element(const Part& part, const ElementName& element);
  void add_member(Json& list, const ElementName& element, std::string_view text);

  FormFields fields_{.texts = std::make_shared<Json>(Json::object())};
  std::set<std::string> numbered_;                                      // names seen so far
  std::map<std::pair<std::string, int>, std::size_t> place_of_number_;  // in the list
};

void FormReader::add(const Part& part) {
  check_text(part);
  const auto element = element_name(part.name);
  const bool has_number = element && element->number != kNoNumber;
  if (has_number && !numbered_.insert(part.name).second) refuse_twice(part.name);
  if (part.is_file) return add_file(part, element);
  if (element) return add_element(part, *element);
  if (!fields_.texts->emplace(part.name, part.bytes).second) refuse_twice(part.name);
}

void FormReader::add_file(const Part& part, const std::optional<ElementName>& element) {
  auto& files = fields_.files[element && element->rest.empty() ? element->list : part.name];
  if (!part.is_unchosen) files.push_back({part.file, std::string(part.bytes)});
}

void FormReader::add_element(const Part& part, const ElementName& element) {
  auto& list = *fields_.texts->emplace(element.list, Json::array()).first;
  if (!list.is_array()) refuse_twice(element.list);
  if (element.rest.empty()) return list.push_back(part.bytes);
  const bool is_key =
      element.rest.size() > 2 && element.rest.starts_with('[') && element.rest.ends_with(']');
  if (!is_key)
    refuse(part.name,
           "'" + part.name.substr(0, kLongestQuoted) + "' should be a name, name[] or name[][key]");
  add_member(list, element, part.bytes);
}

// The k-th `name[][key]` of a key belongs to the list's k-th object: clients group by key. Numbers
// say which object is meant.
void FormReader::add_member(Json& list, const ElementName& element, std::string_view text) {
  const auto key = element.rest.substr(1, element.rest.size() - 2);
  if (element.number != kNoNumber) {
    const auto [place, is_new] =
        place_of_number_.try_emplace({element.list, element.number}, list.size());
    if (is_new) list.push_back(Json::object());
    if (!list[place->second].emplace(key, text).second) refuse_twice(element.list);
    return;
  }
  const auto lacks_it = [&](const Json& one) { return one.is_object() && !one.contains(key); };
  const auto next = std::find_if(list.begin(), list.end(), lacks_it);
  if (next != list.end())
    (*next)[key] = text;
  else
    list.push_back({{key, text}});
}

}  // namespace

FormFields read_form_fields(const std::vector<Part>& form) {
  FormReader reader;
  for (const auto* const part : in_order(form)) reader.add(*part);
  return std::move(reader).fields();
}

}  // namespace braid::serve
