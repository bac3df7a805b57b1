#include "pipeline/files/extra_model_paths.h"

#include <yaml-cpp/yaml.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hub_cache.h"
#include "base/text_stream.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// Throws what names the line, as the parser's own errors do.
void expect(bool holds, const YAML::Node& node, const char* what) {
  if (!holds) throw YAML::Exception(node.Mark(), what);
}

std::string text_in(const YAML::Node& node) {
  expect(node.IsScalar(), node, "a path, or several in a block of lines, should be here");
  return node.Scalar();
}

bool truth_in(const YAML::Node& node) {
  bool is_true = false;
  const bool is_number = node.IsScalar() && (node.Scalar() == "0" || node.Scalar() == "1");
  if (is_number) return node.Scalar() == "1";
  expect(YAML::convert<bool>::decode(node, is_true), node, "true or false should be here");
  return is_true;
}

// The folders of a section: its base and whether it is the default hold for all of them.
void add_section(const YAML::Node& section, fs::path base, std::vector<ExtraFolder>& folders) {
  if (section.IsNull()) return;
  expect(section.IsMap(), section, "a section of lines 'key: path' should be here");
  const auto given = section["base_path"], is_default = section["is_default"];
  if (given) base /= expanded_path(text_in(given));
  const bool comes_first = is_default && truth_in(is_default);
  for (const auto& entry : section) {
    const auto kind = text_in(entry.first);
    if (kind == "base_path" || kind == "is_default" || entry.second.IsNull()) continue;
    TextReader paths(text_in(entry.second));
    for (std::string line; std::getline(paths, line);) {
      if (line.empty()) continue;
      const auto path = (base / line).lexically_normal();
      folders.push_back({.kind = kind,
                         .path = path.has_filename() ? path : path.parent_path(),
                         .is_default = comes_first});
    }
  }
}

}  // namespace

std::vector<ExtraFolder> read_extra_model_paths(const fs::path& file) {
  constexpr std::uint64_t kLongest = 1 << 20;
  std::vector<ExtraFolder> folders;
  try {
    const auto document = YAML::Load(read_file(file, kLongest));
    expect(document.IsNull() || document.IsMap(), document, "sections should be here");
    for (const auto& section : document) add_section(section.second, file.parent_path(), folders);
  } catch (const YAML::Exception& error) {
    throw InputError(
        text_of(file.string(), ": line ", error.mark.line + 1, " cannot be read: ", error.msg));
  }
  return folders;
}

}  // namespace braid
