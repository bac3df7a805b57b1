#include "pipeline/families/known_names.h"

#include <algorithm>

namespace braid {

const std::vector<UsualFile>& usual_files() {
  static const std::vector<std::string> kOtherLms = {
      "abliterated", "uncensored", "heretic", "instruct",  "thinking", "embedding",
      "reranker",    "coder",      "vl",      "josiefied", "guard",    "finetune"};
  static const std::vector<std::string> kOtherVaes = {"flux2", "sd3", "ultra"};
  static const std::vector<std::string> kOtherVisionLms = {
      "thinking", "3b", "32b", "72b", "mmproj", "uncensored", "abliterated"};
  static const std::vector<UsualFile> kRows = {
      {"FLUX.1", "text_encoder", {"clipl"}, {"long", "vision", "detail"}, "clip_l.safetensors"},
      {"FLUX.1", "text_encoder_2", {"t5xxl"}, {"flan", "umt"}, "t5xxl_fp16.safetensors"},
      {"FLUX.1", "vae", {"ae", "fluxvae", "fluxae"}, kOtherVaes, "ae.safetensors"},
      {"Z-Image", "text_encoder", {"qwen34b"}, kOtherLms, "qwen_3_4b.safetensors"},
      {"Z-Image", "vae", {"ae", "fluxvae", "fluxae"}, kOtherVaes, "ae.safetensors"},
      {"Krea 2", "text_encoder", {"qwen3vl4b"}, {"thinking", "instruct"}, "qwen3vl_4b.safetensors"},
      {"Krea 2", "vae", {"qwenimagevae", "wan21vae"}, {"layered"}, "qwen_image_vae.safetensors"},
      {"FLUX.3", "text_encoder", {"qwen3vl4b"}, {"thinking", "instruct"}, "qwen3vl_4b.safetensors"},
      {"FLUX.3", "vae", {"flux2vae", "flux2ae"}, {"small", "tiny"}, "flux2-vae.safetensors"},
      {"Qwen-Image-2.1",
       "text_encoder",
       {"qwen3vl8b"},
       {"thinking", "instruct"},
       "qwen3vl_8b.safetensors"},
      {"Qwen-Image-2.1",
       "vae",
       {"qwenimage21vae", "qwenimage2vae"},
       {"layered"},
       "qwen_image_2.1_vae.safetensors"},
      {"Qwen-Image", "text_encoder", {"qwen25vl7b"}, kOtherVisionLms, "qwen_2.5_vl_7b.safetensors"},
      {"Qwen-Image", "vae", {"qwenimagevae"}, {"layered"}, "qwen_image_vae.safetensors"},
      {"Qwen-Image-Edit",
       "text_encoder",
       {"qwen25vl7b"},
       kOtherVisionLms,
       "qwen_2.5_vl_7b.safetensors"},
      {"Qwen-Image-Edit", "vae", {"qwenimagevae"}, {"layered"}, "qwen_image_vae.safetensors"},
      {"Qwen-Image-Edit-Plus",
       "text_encoder",
       {"qwen25vl7b"},
       kOtherVisionLms,
       "qwen_2.5_vl_7b.safetensors"},
      {"Qwen-Image-Edit-Plus", "vae", {"qwenimagevae"}, {"layered"}, "qwen_image_vae.safetensors"},
      {"Qwen-Image-Layered",
       "text_encoder",
       {"qwen25vl7b"},
       kOtherVisionLms,
       "qwen_2.5_vl_7b.safetensors"},
      {"Qwen-Image-Layered",
       "vae",
       {"qwenimagelayeredvae"},
       {},
       "qwen_image_layered_vae.safetensors"},
      {"FLUX.2", "text_encoder", {"qwen3", "mistral"}, kOtherLms, "qwen_3_8b.safetensors"},
      {"FLUX.2", "vae", {"flux2vae", "flux2ae"}, {"small", "tiny"}, "flux2-vae.safetensors"}};
  return kRows;
}

const std::vector<std::string_view>& certain_words() {
  static const std::vector<std::string_view> kWords = {
      "schnell", "kontext", "turbo", "klein", "flux", "image", "distill", "canny", "depth"};
  return kWords;
}

bool is_commonest(const std::string& directory) { return directory == "Z-Image-Turbo"; }

std::string other_word(const std::string& directory) {
  return directory == "Z-Image" ? "base" : "";
}

std::string directory_of_name(const std::string& name) {
  if (name == "flux1kreadev") return "FLUX.1-dev";
  return name == "flux1depthdev" ? "FLUX.1-Canny-dev" : "";
}

std::string full_name(const std::string& name) { return "flux2" + name; }

bool is_other_pipeline(const std::string& name) {
  for (const char* const other : {"ZImageOmni", "ZImageControlNet", "FluxPriorRedux"})
    if (name.starts_with(other)) return true;
  return false;
}

bool is_redux_pipeline(const std::string& name) { return name == "FluxPriorReduxPipeline"; }

FileKind kind_of_class(const std::string& name) {
  const auto is = [&](const char* word) { return name.find(word) != name.npos; };
  if (is("ControlNet")) return {FileRole::kControlNet, "a " + name};
  if (is("Transformer2D") || is("Transformer3D") || is("UNet"))
    return {FileRole::kModel, "a " + name};
  if (is("Autoencoder")) return {FileRole::kAutoencoder, "an " + name};
  const bool is_text = is("T5") || is("CLIPText") || is("CLIPModel") || is("CausalLM") ||
                       is("Qwen") || is("Mistral") || is("Llama");
  return is_text ? FileKind{FileRole::kTextEncoder, "a " + name} : FileKind();
}

}  // namespace braid
