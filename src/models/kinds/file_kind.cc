#include "models/kinds/file_kind.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "models/kinds/adapted_model.h"
#include "models/kinds/file_marks.h"
#include "weights/adapters/adapter_keys.h"
#include "weights/files/denoiser_prefixes.h"

namespace braid {
namespace {

constexpr const char* kOwnFamilies =
    "FLUX.1, FLUX.2, FLUX.3, Z-Image, JoyAI-Image-Edit, Krea 2, Qwen-Image and Qwen-Image-2.1";

// Whether the name begins so, behind any of the prefixes that programs write.
bool begins_with(std::string_view name, std::string_view mark) {
  if (name.starts_with(mark)) return true;
  const auto inner = without_outer_prefix(name);
  return inner.size() < name.size() && begins_with(inner, mark);
}

bool has_mark(std::string_view name, std::string_view mark) {
  if (mark.starts_with('^')) return begins_with(name, mark.substr(1));
  for (auto at = name.find(mark); at != name.npos; at = name.find(mark, at + 1))
    if (at == 0 || name[at - 1] == '.') return true;
  return false;
}

bool has_any(const Checkpoint& checkpoint, const std::vector<const char*>& marks) {
  const auto& tensors = checkpoint.tensors();
  return std::any_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
    return std::any_of(marks.begin(), marks.end(),
                       [&](const char* mark) { return has_mark(tensor.first, mark); });
  });
}

// The extent of the first tensor whose name ends so; 0 if there is none.
std::int64_t extent_of(const Checkpoint& checkpoint, std::string_view ending, std::size_t dim) {
  for (const auto& [name, stored] : checkpoint.tensors())
    if (name.ends_with(ending) && stored.entry.shape.size() > dim) return stored.entry.shape[dim];
  return 0;
}

bool has_ending(const Checkpoint& checkpoint, std::string_view ending) {
  return std::any_of(checkpoint.tensors().begin(), checkpoint.tensors().end(),
                     [&](const auto& tensor) { return tensor.first.ends_with(ending); });
}

// ------------------------------------------------------------------------ what the shapes add

// The width of the text that cross attention sees, in the original names or diffusers'.
std::string stable_diffusion_name(const Checkpoint& checkpoint, const std::string& otherwise) {
  const auto width = extent_of(checkpoint, "transformer_blocks.0.attn2.to_k.weight", 1);
  const bool is_xl = has_ending(checkpoint, "label_emb.0.0.weight") ||
                     has_ending(checkpoint, "add_embedding.linear_1.weight");
  if (is_xl || width == 2048) return "a Stable Diffusion XL (SDXL) model";
  if (width == 768) return "a Stable Diffusion 1.5 (SD1.5) model";
  if (width == 1024) return "a Stable Diffusion 2 (SD2) model";
  return otherwise;
}

// Z-Image's blocks are Lumina 2's.
FileKind lumina_kind(const Checkpoint& checkpoint, const FileKind& lumina) {
  constexpr std::int64_t kZImageWidth = 3840;
  if (extent_of(checkpoint, "cap_embedder.1.weight", 0) != kZImageWidth) return lumina;
  return {FileRole::kModel, "a Z-Image transformer", "Z-Image"};
}

std::string autoencoder_name(const Checkpoint& checkpoint) {
  std::size_t dims = 0;
  for (const auto& [name, stored] : checkpoint.tensors())
    if (name.ends_with("decoder.conv_in.weight")) dims = stored.entry.shape.size();
  if (dims == 5) return "an autoencoder of a video model";
  switch (extent_of(checkpoint, "decoder.conv_in.weight", 1)) {
    case 4:
      return "an autoencoder of Stable Diffusion's (4 channels)";
    case 16:
      return "an autoencoder of 16 channels, as FLUX.1's";
    case 32:
      return "an autoencoder of 32 channels, as FLUX.2's";
    default:
      return "an autoencoder";
  }
}

std::string t5_name(const Checkpoint& checkpoint) {
  const auto words = std::max(extent_of(checkpoint, "shared.weight", 0),
                              extent_of(checkpoint, "token_embd.weight", 0));
  const auto width = std::max(extent_of(checkpoint, "shared.weight", 1),
                              extent_of(checkpoint, "token_embd.weight", 1));
  if (words > 200'000) return "a UMT5 text encoder";
  return width == 4096 ? "a T5-XXL text encoder" : "a T5 text encoder";
}

std::string clip_name(const Checkpoint& checkpoint) {
  switch (std::max(extent_of(checkpoint, "token_embedding.weight", 1),
                   extent_of(checkpoint, "position_embedding.weight", 1))) {
    case 768:
      return "a CLIP-L text encoder";
    case 1280:
      return "a CLIP-G text encoder";
    default:
      return "a CLIP text encoder";
  }
}

std::string qwen3_name(const Checkpoint& checkpoint) {
  switch (extent_of(checkpoint, "layers.0.input_layernorm.weight", 0)) {
    case 1024:
      return "a Qwen3 0.6B text encoder";
    case 2560:
      return "a Qwen3 4B text encoder";
    case 4096:
      return "a Qwen3 8B text encoder";
    default:
      return "a text encoder of Qwen3's kind";
  }
}

FileKind with_shapes(FileKind kind, const Checkpoint& checkpoint) {
  const auto is = [&](const char* words) { return kind.name.starts_with(words); };
  if (is("a Stable Diffusion model")) kind.name = stable_diffusion_name(checkpoint, kind.name);
  if (is("a Lumina 2")) return lumina_kind(checkpoint, kind);
  if (kind.name == "an autoencoder") kind.name = autoencoder_name(checkpoint);
  if (is("a T5")) kind.name = t5_name(checkpoint);
  if (is("a CLIP text")) kind.name = clip_name(checkpoint);
  if (is("a language model of Qwen3's")) kind.name = qwen3_name(checkpoint);
  return kind;
}

// -------------------------------------------------------------------------------- adapters

bool is_part_of_adapter(const std::string& name) {
  const auto role = parse_adapter_key(name).role;  // some decoders of sound have an alpha, too
  if (role != AdapterRole::kReplacement && role != AdapterRole::kUnreadable &&
      role != AdapterRole::kAlpha)
    return true;
  constexpr std::array kOthers = {".oft_",        ".boft_",          ".lora_E", ".ia3_l",
                                  ".vera_lambda", ".lora_embedding", ".hada_",  ".lokr_"};
  return std::any_of(kOthers.begin(), kOthers.end(),
                     [&](const char* other) { return name.find(other) != name.npos; });
}

}  // namespace

FileKind kind_of_file(const Checkpoint& checkpoint) {
  const auto& tensors = checkpoint.tensors();
  const bool is_adapter = std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return is_part_of_adapter(tensor.first);
  });
  if (is_adapter) {
    const auto model = adapted_model(checkpoint);
    return {FileRole::kAdapter, model.empty() ? "a LoRA" : "a LoRA for " + model};
  }
  for (const auto& row : file_marks()) {
    const bool is_one =
        has_any(checkpoint, row.any) && (row.with.empty() || has_any(checkpoint, row.with));
    if (is_one) return with_shapes(row.kind, checkpoint);
  }
  return {};
}

std::string role_name(FileRole role) {
  switch (role) {
    case FileRole::kModel:
      return "a model";
    case FileRole::kTextEncoder:
      return "a text encoder";
    case FileRole::kAutoencoder:
      return "an autoencoder";
    case FileRole::kAdapter:
      return "a LoRA";
    case FileRole::kControlNet:
      return "a ControlNet";
    case FileRole::kRedux:
      return "FLUX.1 Redux";
    case FileRole::kOther:
    case FileRole::kUnknown:
      break;
  }
  return "of use";
}

namespace {

std::string what_to_do(const FileKind& kind) {
  switch (kind.role) {
    case FileRole::kModel:
      return kind.family.empty() ? text_of("Braid runs ", kOwnFamilies)
                                 : "give it as the model (`model`)";
    case FileRole::kTextEncoder:
      return "give it beside a model, as `text_encoder_files`";
    case FileRole::kAutoencoder:
      return "give it beside a model, as `vae_file`";
    case FileRole::kAdapter:
      return "give it beside the model that it was made for, as `adapters`";
    case FileRole::kControlNet:
      return "give its directory beside a model, as `controlnets`";
    case FileRole::kRedux:
      return "give the directory of FLUX.1 Redux beside a model, as `redux`";
    case FileRole::kOther:
    case FileRole::kUnknown:
      break;
  }
  return "Braid has no use for it";
}

}  // namespace

std::string misuse_of_file(const std::string& path, const FileKind& kind, FileRole wanted) {
  if (kind.role == FileRole::kUnknown)
    return text_of(path, " is not ", role_name(wanted), " that Braid knows");
  if (wanted == FileRole::kModel && kind.role == FileRole::kModel)
    return text_of(path, " is ", kind.name, ", which Braid does not run: it runs ", kOwnFamilies);
  return text_of(path, " is ", kind.name, ", not ", role_name(wanted), ": ", what_to_do(kind));
}

}  // namespace braid
