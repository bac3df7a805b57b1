#include "net/enhancer/system_prompts.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hub_cache.h"
#include "base/json.h"
#include "base/utf8.h"

namespace braid::net {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostPromptBytes = 1 << 20;
constexpr const char* kText = "system_prompt.txt";
constexpr const char* kTexts = "system_prompts.json";
constexpr const char* kTasks[] = {"t2i", "i2i", "t2i_bbox", "i2i_bbox"};

constexpr const char* kOwn =
    "You write prompts for a model that draws pictures from text. Turn the user's request into one "
    "prompt: a single paragraph in English of 60 to 200 words that says what is to be seen. Keep "
    "every subject, number, colour, place, style and wording that the request names, and quote "
    "text that should be readable in the picture word for word, in its own language. Decide what "
    "is left open: the setting, the composition, the light, materials and colours. If pictures "
    "come with the request, say what is to change in them and what stays. Answer with the prompt "
    "alone: no explanation, no title, no list, no quotation marks around it.";

SystemPrompts same_for_all(EnhancerKind kind, const std::string& text) {
  SystemPrompts prompts{.kind = kind};
  for (const char* const task : kTasks) prompts.texts[task] = text;
  return prompts;
}

SystemPrompts read_texts(const fs::path& file) {
  const auto json = read_json_object(file);
  SystemPrompts prompts{.kind = EnhancerKind::kCaptioner};
  for (const char* const task : kTasks) prompts.texts[task] = json.string(task);
  return prompts;
}

SystemPrompts read_one(const fs::path& file) {
  if (file.extension() == ".json") return read_texts(file);
  const auto text = read_file(file, kMostPromptBytes);
  require(is_valid_utf8(text) && text.find('\0') == text.npos, file.string(),
          " should be UTF-8 text: what an enhancer is told to do");
  require(text.find_first_not_of(" \t\r\n") != text.npos, file.string(),
          " should say what an enhancer is to do, it is empty");
  const bool is_rewriters = file.filename() == kText;
  return same_for_all(is_rewriters ? EnhancerKind::kRewriter : EnhancerKind::kPlain, text);
}

fs::path file_in(const fs::path& folder) {
  for (const char* const inside : {".", "prompt_upsampler", "prompt_enhancer"})
    for (const char* const name : {kTexts, kText})
      if (const auto file = (folder / inside / name).lexically_normal(); is_file(file)) return file;
  return {};
}

}  // namespace

SystemPrompts read_system_prompts(const fs::path& place) {
  auto found = place;
  if (!is_there(found))
    if (const auto name = hub_name(place.string()))
      if (const auto cached = find_in_hub(*name, hub_cache()); !cached.empty()) found = cached;
  if (!is_folder(found)) return read_one(found);
  const auto file = file_in(snapshot_of(found));
  require(!file.empty(), place.string(), " has neither a ", kText, " nor a ", kTexts);
  return read_one(file);
}

SystemPrompts system_prompts_for(const fs::path& model) {
  if (is_folder(model))
    if (const auto file = file_in(model); !file.empty()) return read_one(file);
  return same_for_all(EnhancerKind::kPlain, kOwn);
}

}  // namespace braid::net
