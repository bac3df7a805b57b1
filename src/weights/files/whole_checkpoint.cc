#include "weights/files/whole_checkpoint.h"

#include <algorithm>
#include <array>
#include <set>

#include "weights/files/denoiser_prefixes.h"

namespace braid {
namespace {

// A whole checkpoint has one of each.
constexpr std::array kDenoisers = {"model.diffusion_model.", "diffusion_model.", "transformer."};
constexpr std::array kAutoencoders = {"vae.", "first_stage_model."};
// Text encoders: ComfyUI's, those of Stable Diffusion's tools, and diffusers' folders. A name or
// number of the encoder follows the first two.
constexpr std::array kNamedTexts = {"text_encoders.", "conditioner.embedders."};
constexpr std::array kTexts = {"cond_stage_model.", "text_encoder.", "text_encoder_2."};

// These belong to a schedule, or to the tool that saved the model.
const std::vector<std::string> kOtherParts = {
    "model_sampling.", "model.model_sampling.", "model_ema.", "denoiser.", "log_sigmas", "sigmas"};

constexpr const char* kWrapper = "transformer.";

std::size_t after_segment(const std::string& name, std::size_t begin) {
  return std::min(name.find('.', begin), name.size() - 1) + 1;
}

bool has_at(const std::string& name, std::size_t at, std::string_view what) {
  return name.compare(at, what.size(), what) == 0;
}

// "text_encoders.NAME.transformer.", or "text_encoders.NAME." without such a level.
enum class EncoderName { kGiven, kOptional };
std::string prefix_of_text(const std::string& name, std::size_t root_length, EncoderName encoder) {
  const bool is_named = encoder == EncoderName::kGiven;
  auto end = is_named ? after_segment(name, root_length) : root_length;
  if (!is_named && !has_at(name, end, kWrapper) && has_at(name, after_segment(name, end), kWrapper))
    end = after_segment(name, end);
  if (has_at(name, end, kWrapper)) end += std::string_view(kWrapper).size();
  return name.substr(0, end);
}

void add_part(const std::string& name, std::set<std::string>& prefixes) {
  for (const std::string_view root : kNamedTexts)
    if (name.starts_with(root))
      prefixes.insert(prefix_of_text(name, root.size(), EncoderName::kGiven));
  for (const std::string_view root : kTexts)
    if (name.starts_with(root))
      prefixes.insert(prefix_of_text(name, root.size(), EncoderName::kOptional));
  for (const char* const prefix : kAutoencoders)
    if (name.starts_with(prefix)) prefixes.insert(prefix);
}

std::string denoiser_prefix(const Checkpoint& checkpoint) {
  for (const std::string prefix : kDenoisers) {
    const auto first = checkpoint.tensors().lower_bound(prefix);
    if (first != checkpoint.tensors().end() && first->first.starts_with(prefix)) return prefix;
  }
  return "";
}

}  // namespace

std::vector<std::string> parts_in(const Checkpoint& checkpoint) {
  const auto denoiser = denoiser_prefix(checkpoint);
  if (denoiser.empty()) return {""};
  std::set<std::string> prefixes = {denoiser};
  for (const auto& [name, stored] : checkpoint.tensors()) add_part(name, prefixes);
  if (prefixes.size() < 2) return {""};
  return {prefixes.begin(), prefixes.end()};
}

Checkpoint denoiser_in(const Checkpoint& checkpoint) {
  if (parts_in(checkpoint).size() > 1) return checkpoint.part(denoiser_prefix(checkpoint));
  const auto denoiser = checkpoint.without(kOtherParts);
  const auto& tensors = denoiser.tensors();
  for (const auto prefix : kOuterPrefixes) {
    const bool is_wrapped =
        !tensors.empty() && std::all_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
          return tensor.first.starts_with(prefix);
        });
    if (is_wrapped) return denoiser_in(denoiser.part(std::string(prefix)));
  }
  return denoiser;
}

}  // namespace braid
