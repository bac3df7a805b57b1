#include "base/json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/file.h"

namespace braid {
namespace {

constexpr int kMaxDepth = 100;

// Rejects what nlohmann's parser would silently accept: duplicate keys and unbounded nesting.
class Strict {
 public:
  explicit Strict(const std::string& source) : source_(source) {}

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    require(depth <= kMaxDepth, source_, " nests JSON deeper than ", kMaxDepth, " levels");
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      require(keys_.back().insert(key).second, source_, " has the key '", key, "' twice");
    }
    return true;
  }

 private:
  const std::string& source_;
  std::vector<std::unordered_set<std::string>> keys_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& source) {
  try {
    return Json::parse(text.begin(), text.end(), Strict(source));
  } catch (const nlohmann::json::exception& e) {
    throw InputError(text_of(source, " is not valid JSON: ", e.what()));
  }
}

Json read_json(const std::filesystem::path& path) {
  return parse_json(read_file(path), path.string());
}

JsonObject read_json_object(const std::filesystem::path& path) {
  auto json = std::make_shared<const Json>(read_json(path));
  JsonObject object(*json, path.string());
  object.owned_ = std::move(json);
  return object;
}

JsonObject::JsonObject(const Json& object, std::string source)
    : object_(&object), source_(std::move(source)) {
  require(object.is_object(), source_, " should hold a JSON object, it holds ", object.type_name());
}

bool JsonObject::has(std::string_view key) const {
  const auto it = object_->find(std::string(key));
  return it != object_->end() && !it->is_null();
}

const Json& JsonObject::at(std::string_view key) const {
  require(has(key), source_, " has no '", key, "'");
  return object_->at(std::string(key));
}

std::int64_t JsonObject::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  const auto& value = at(key);
  require(value.is_number_integer(), source_, ": '", key, "' should be a whole number, it is ",
          value.dump());
  const bool fits = !value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX;
  require(fits && value.get<std::int64_t>() >= low && value.get<std::int64_t>() <= high, source_,
          ": '", key, "' should lie between ", low, " and ", high, ", it is ", value.dump());
  return value.get<std::int64_t>();
}

std::int64_t JsonObject::integer_or(std::string_view key, std::int64_t otherwise, std::int64_t low,
                                    std::int64_t high) const {
  return has(key) ? integer(key, low, high) : otherwise;
}

double JsonObject::number_or(std::string_view key, double otherwise) const {
  if (!has(key)) return otherwise;
  const auto& value = at(key);
  require(value.is_number() && std::isfinite(value.get<double>()), source_, ": '", key,
          "' should be a number, it is ", value.dump());
  return value.get<double>();
}

bool JsonObject::flag_or(std::string_view key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const auto& value = at(key);
  require(value.is_boolean(), source_, ": '", key, "' should be true or false, it is ",
          value.dump());
  return value.get<bool>();
}

std::string JsonObject::string(std::string_view key) const {
  const auto& value = at(key);
  require(value.is_string(), source_, ": '", key, "' should be a string, it is ", value.dump());
  return value.get<std::string>();
}

std::string JsonObject::string_or(std::string_view key, std::string_view otherwise) const {
  return has(key) ? string(key) : std::string(otherwise);
}

std::vector<std::int64_t> JsonObject::integers_or(std::string_view key,
                                                  std::vector<std::int64_t> otherwise,
                                                  std::int64_t low, std::int64_t high) const {
  if (!has(key)) return otherwise;
  const auto& value = at(key);
  require(value.is_array(), source_, ": '", key, "' should be a list of whole numbers, it is ",
          value.dump());
  std::vector<std::int64_t> out;
  for (const auto& item : value) {
    require(item.is_number_integer() && item.get<std::int64_t>() >= low &&
                item.get<std::int64_t>() <= high,
            source_, ": '", key, "' should hold whole numbers between ", low, " and ", high,
            ", one is ", item.dump());
    out.push_back(item.get<std::int64_t>());
  }
  return out;
}

std::vector<std::string> JsonObject::strings_or(std::string_view key,
                                                std::vector<std::string> otherwise) const {
  if (!has(key)) return otherwise;
  const auto& value = at(key);
  require(value.is_array(), source_, ": '", key, "' should be a list of strings, it is ",
          value.dump());
  std::vector<std::string> out;
  for (const auto& item : value) {
    require(item.is_string(), source_, ": '", key, "' should hold strings, one item is ",
            item.dump());
    out.push_back(item.get<std::string>());
  }
  return out;
}

}  // namespace braid
