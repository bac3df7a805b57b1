#include "weights/files/whole_checkpoint.h"

#include <algorithm>
#include <array>
#include <set>

namespace braid {
namespace {

constexpr const char* kDenoiser = "model.diffusion_model.";
constexpr std::array kOthers = {"vae.", "first_stage_model."};
constexpr const char* kText = "text_encoders.";

// "text_encoders.NAME.transformer.", or "text_encoders.NAME." without such a level.
std::string prefix_of_text(const std::string& name) {
  const std::string wrapper = "transformer.";
  const auto end = std::min(name.find('.', std::string(kText).size()), name.size() - 1) + 1;
  return name.substr(0,
                     name.compare(end, wrapper.size(), wrapper) == 0 ? end + wrapper.size() : end);
}

}  // namespace

std::vector<std::string> parts_in(const Checkpoint& checkpoint) {
  std::set<std::string> prefixes;
  for (const auto& [name, stored] : checkpoint.tensors()) {
    if (name.starts_with(kDenoiser)) prefixes.insert(kDenoiser);
    for (const char* const other : kOthers)
      if (name.starts_with(other)) prefixes.insert(other);
    if (name.starts_with(kText)) prefixes.insert(prefix_of_text(name));
  }
  if (prefixes.size() < 2 || !prefixes.contains(kDenoiser)) return {""};
  return {prefixes.begin(), prefixes.end()};
}

Checkpoint denoiser_in(const Checkpoint& checkpoint) {
  return parts_in(checkpoint).size() > 1 ? checkpoint.part(kDenoiser) : checkpoint;
}

}  // namespace braid
