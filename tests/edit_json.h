// A change to a JSON file of a test's model.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"

namespace braid {

inline void edit_json(const std::filesystem::path& file, const std::function<void(Json&)>& change) {
  auto json = read_json(file);
  change(json);
  write_file(file, json.dump());
}

}  // namespace braid
