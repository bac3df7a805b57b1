#include "serve/fields.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "serve/api_error.h"

namespace braid::serve {
namespace {

const std::string kBody = "the request";

// An InputError of base/json as the client's, with the field that it is about.
template <class Read>
auto naming(const std::string& param, Read read) {
  try {
    return read();
  } catch (const InputError& error) {
    refuse(param, error.what());
  }
}

bool read_decimal(const std::string& text, std::uint64_t& value) {
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace

std::string error_json(const ApiError& error) {
  const bool is_clients = error.status < 500 && error.status != 429;
  const auto type = error.status == 429 ? "rate_limit_error"
                    : is_clients        ? "invalid_request_error"
                                        : "server_error";
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const Json json = {{"error",
                      {{"message", error.what()},
                       {"type", type},
                       {"param", or_null(error.param)},
                       {"code", or_null(error.code)}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Fields::Fields(std::string_view body) {
  const auto parse = [&] { return std::make_shared<const Json>(parse_json(body, kBody)); };
  try {
    json_ = parse();
    (void)JsonObject(*json_, kBody);
  } catch (const InputError& error) {
    throw ApiError(400, error.what(), "invalid_json");
  }
}

bool Fields::has(const std::string& name) {
  known_.insert(name);
  return JsonObject(*json_, kBody).has(name);
}

std::optional<std::int64_t> Fields::integer(std::initializer_list<const char*> names,
                                            std::int64_t low, std::int64_t high) {
  std::optional<std::int64_t> value;
  for (const auto* const name : names)
    if (has(name) && !value)
      value = naming(name, [&] { return JsonObject(*json_, kBody).integer(name, low, high); });
  return value;
}

std::optional<double> Fields::number(std::initializer_list<const char*> names) {
  std::optional<double> value;
  for (const auto* const name : names)
    if (has(name) && !value)
      value = naming(name, [&] { return JsonObject(*json_, kBody).number_or(name, 0); });
  return value;
}

std::optional<bool> Fields::flag(const std::string& name) {
  if (!has(name)) return {};
  return naming(name, [&] { return JsonObject(*json_, kBody).flag_or(name, false); });
}

std::optional<std::string> Fields::text(const std::string& name, std::size_t most) {
  if (!has(name)) return {};
  auto value = naming(name, [&] { return JsonObject(*json_, kBody).string(name); });
  if (value.size() > most)
    refuse(name,
           text_of("'", name, "' should have at most ", most, " bytes, it has ", value.size()));
  return value;
}

std::optional<std::uint64_t> Fields::seed() {
  if (!has("seed")) return {};
  const auto& value = json_->at("seed");
  // An equality of the JSON library would take 2^64-1 for -1.
  const bool is_any =
      value.is_number_integer() && !value.is_number_unsigned() && value.get<std::int64_t>() == -1;
  if (is_any) return {};
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  std::uint64_t seed = 0;
  if (value.is_string() && read_decimal(value.get<std::string>(), seed)) return seed;
  refuse("seed", "'seed' should be a whole number between 0 and 2^64-1, or -1 for any, it is " +
                     value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 100));
}

std::string Fields::word(const std::string& name, std::initializer_list<const char*> words,
                         const std::string& otherwise) {
  const auto value = text(name, 1000).value_or(otherwise);
  std::string list;
  for (const auto* const word : words) {
    if (value == word) return value;
    list += (list.empty() ? "" : ", ") + std::string(word);
  }
  refuse(name, text_of("'", name, "' should be one of ", list, ", it is '", value, "'"));
}

void Fields::ignore(std::initializer_list<const char*> names) {
  for (const auto* const name : names) known_.insert(name);
}

void Fields::finish() const {
  for (const auto& [name, value] : json_->items())
    if (!known_.contains(name) && !value.is_null())
      throw ApiError(400, "there is no field '" + name.substr(0, 100) + "'", "unknown_parameter",
                     name.substr(0, 100));
}

Size size_of(const std::string& text, const std::string& param) {
  Size size{};
  const auto* const end = text.data() + text.size();
  const auto width = std::from_chars(text.data(), end, size.width);
  const bool has_height = width.ec == std::errc() && width.ptr != end && *width.ptr == 'x';
  const auto height = has_height ? std::from_chars(width.ptr + 1, end, size.height)
                                 : std::from_chars_result{end, std::errc::invalid_argument};
  if (height.ec != std::errc() || height.ptr != end || size.width < 1 || size.height < 1)
    refuse(param, text_of("'", param, "' should be WIDTHxHEIGHT, as 512x512, it is '",
                          text.substr(0, 100), "'"));
  return size;
}

}  // namespace braid::serve
