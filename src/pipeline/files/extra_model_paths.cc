#include "pipeline/files/extra_model_paths.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/ascii.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hub_cache.h"
#include "pipeline/families/comfy_folders.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

std::string without_blanks(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

class ExtraPathsReader {
 public:
  explicit ExtraPathsReader(const fs::path& file) : file_(file) {
    constexpr std::uint64_t kLongest = 1 << 20;
    constexpr const char* kMark = "\xef\xbb\xbf";  // UTF-8's
    std::istringstream text(read_file(file, kLongest));
    for (std::string line; std::getline(text, line);) lines_.push_back(line);
    if (!lines_.empty() && lines_[0].starts_with(kMark)) lines_[0].erase(0, 3);
  }

  std::vector<ExtraFolder> run() {
    for (; at_ < lines_.size(); ++at_) {
      const auto text = without_blanks(lines_[at_]);
      if (text.empty() || text[0] == '#' || is_mark(lines_[at_])) continue;
      const auto [key, value] = entry_of(text);
      if (indent() == 0)
        begin_section(value);
      else
        read_entry(key, value);
    }
    end_section();
    return std::move(folders_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(text_of(file_.string(), ": line ", at_ + 1, " ", what,
                             ": Braid reads sections ('name:') of lines 'key: path', or 'key: |' ",
                             "with a path on each further line"));
  }

  // What begins or ends YAML's documents, and its directives.
  static bool is_mark(const std::string& line) {
    const auto text = without_blanks(without_comment(line));
    return line[0] == '%' || ((text == "---" || text == "...") && line.starts_with(text));
  }

  std::pair<std::string, std::string> entry_of(const std::string& text) const {
    const bool is_quoted = text[0] == '"' || text[0] == '\'';
    const auto closed = is_quoted ? text.find(text[0], 1) : 0;
    const auto from = std::min(closed, text.size() - 1);
    const auto colon = std::min(text.find(": ", from), text.size() - 1);
    if (text[colon] != ':' || colon == 0 || text[0] == '-') refuse("should be 'key: path'");
    auto key = without_blanks(text.substr(0, colon));
    if (is_quoted) {
      if (closed + 1 != key.size()) refuse("should be 'key: path'");
      key = key.substr(1, key.size() - 2);
    }
    if (key.find_first_of("'\"[]{}&*!|>%@`?,#\\") != key.npos || key == "<<")
      refuse("should be 'key: path'");
    return {key, without_comment(text.substr(colon + 1))};
  }

  std::size_t indent() const {
    const auto& line = lines_[at_];
    const auto end = line.find_first_not_of(' ');
    if (end != line.npos && line[end] == '\t') refuse("should be indented by spaces, not by a tab");
    return end;
  }

  static std::string without_comment(const std::string& value) {
    const bool is_quoted = without_blanks(value).find_first_of("'\"") == 0;
    return without_blanks(is_quoted ? value : value.substr(0, value.find(" #")));
  }

  void begin_section(const std::string& value) {
    const bool is_null = value.empty() || value == "~" || value == "null" || value == "{}";
    if (!is_null) refuse("should begin a section");
    end_section();
    is_in_section_ = true;
  }

  // Paths that its base and its default hold for, wherever in the section these stand.
  void end_section() {
    for (auto& folder : section_) {
      const auto path = (file_.parent_path() / base_ / folder.path).lexically_normal();
      folder.path = path.has_filename() ? path : path.parent_path();
      folder.is_default = is_default_;
      folders_.push_back(folder);
    }
    section_.clear();
    base_.clear();
    is_default_ = false;
    key_indent_ = 0;
  }

  void read_entry(const std::string& key, const std::string& value) {
    if (key_indent_ == 0) key_indent_ = indent();
    if (!is_in_section_ || indent() != key_indent_) refuse("is indented unlike its section");
    if (!is_read(key)) return skip_further_lines();
    if (value == "|" || value == "|-" || value == "|+") return read_block(key);
    const auto text = scalar(value);
    if (key == "base_path")
      base_ = expanded_path(text);
    else if (key == "is_default")
      is_default_ = truth(text);
    else
      section_.push_back({.kind = key, .path = text});
  }

  // Other kinds ("custom_nodes", "embeddings") may be of any form.
  static bool is_read(const std::string& key) {
    if (key == "base_path" || key == "is_default") return true;
    for (const auto* const names : {&comfy::kModels, &comfy::kTextEncoders, &comfy::kAutoencoders,
                                    &comfy::kAdapters, &comfy::kControlNets, &comfy::kDirectories})
      if (std::find(names->begin(), names->end(), key) != names->end()) return true;
    return false;
  }

  // The lines of a list may be indented like their key.
  void skip_further_lines() {
    for (; at_ + 1 < lines_.size(); ++at_) {
      const auto& next = lines_[at_ + 1];
      const auto text = without_blanks(next);
      const auto begin = next.find_first_not_of(' ');
      const bool is_item = text.starts_with("- ") || text == "-";
      const bool is_further = begin > key_indent_ || (begin == key_indent_ && is_item);
      if (!text.empty() && text[0] != '#' && !is_further) return;
    }
  }

  void read_block(const std::string& key) {
    if (key == "base_path" || key == "is_default") refuse("should have one value");
    while (at_ + 1 < lines_.size()) {
      ++at_;
      const auto path = without_blanks(lines_[at_]);
      if (path.empty()) continue;
      if (indent() <= key_indent_) {
        --at_;
        return;
      }
      section_.push_back({.kind = key, .path = path});
    }
  }

  std::string scalar(const std::string& value) const {
    if (value.empty()) refuse("should have a path");
    if (value[0] == '"' || value[0] == '\'') {
      const auto end = value.find(value[0], 1);
      const auto rest = end == value.npos ? "?" : without_blanks(value.substr(end + 1));
      const auto text = value.substr(1, end - 1);
      const bool is_escaped = value[0] == '"' && text.find('\\') != text.npos;
      if (is_escaped || (!rest.empty() && rest[0] != '#')) refuse("has quotes of another form");
      return text;
    }
    const bool is_other = std::string("[]{}&*!|>%@`?,#").find(value[0]) != std::string::npos ||
                          value.starts_with("- ") || value.find(": ") != value.npos;
    if (is_other) refuse("should have a path");
    return value;
  }

  bool truth(const std::string& text) const {
    const auto lower = ascii_lower_case(text);
    if (lower == "true" || lower == "yes" || lower == "on" || lower == "1") return true;
    if (lower != "false" && lower != "no" && lower != "off" && lower != "0")
      refuse("should be true or false");
    return false;
  }

  const fs::path file_;
  std::vector<std::string> lines_ = {};
  std::size_t at_ = 0;
  std::vector<ExtraFolder> folders_ = {}, section_ = {};  // of all sections, of this one
  bool is_in_section_ = false, is_default_ = false;
  fs::path base_ = {};
  std::size_t key_indent_ = 0;
};

}  // namespace

std::vector<ExtraFolder> read_extra_model_paths(const fs::path& file) {
  return ExtraPathsReader(file).run();
}

}  // namespace braid
