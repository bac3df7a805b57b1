#include "pipeline/families/joy/text.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "pipeline/families/chat_tokens.h"
#include "text/chat.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// Length of the system turn as the published tokenizer splits it; the transformer does not see it.
constexpr std::int64_t kSystemTokens = 34;
constexpr std::int64_t kLongestChat = 1 << 16;  // tokens

const ChatTokens kJoyChat{
    .tokens = {"<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"},
    .template_says = {}};

std::vector<double> three_numbers(const JsonObject& json, const char* key) {
  if (!json.has(key)) return {0.5, 0.5, 0.5};
  const auto& list = json.at(key);
  const bool are_three = list.is_array() && list.size() == 3 && list[0].is_number() &&
                         list[1].is_number() && list[2].is_number();
  require(are_three, json.source(), ": '", key, "' should be three numbers");
  return list.get<std::vector<double>>();
}

PictureNorm read_norm(const JsonObject& json, const VisionConfig& vision) {
  const auto same = [&](const char* key, std::int64_t wanted) {
    (void)json.integer_or(key, wanted, wanted, wanted);
  };
  same("patch_size", vision.patch);
  same("temporal_patch_size", vision.frames);
  same("merge_size", vision.merge);
  constexpr auto kMost = std::int64_t(1) << 40;
  auto least = json.integer_or("min_pixels", 65536, 1, kMost);
  auto most = json.integer_or("max_pixels", 16777216, 1, kMost);
  if (json.has("size")) {
    const JsonObject size(json.at("size"), json.source() + ": 'size'");
    least = size.integer_or("shortest_edge", least, 1, kMost);
    most = size.integer_or("longest_edge", most, 1, kMost);
  }
  return {.mean = three_numbers(json, "image_mean"),
          .deviation = three_numbers(json, "image_std"),
          .least_pixels = least,
          .most_pixels = most};
}

}  // namespace

PictureNorm read_picture_norm(const fs::path& processor, const VisionConfig& vision) {
  const auto own = processor / "preprocessor_config.json";
  if (fs::exists(own)) return read_norm(read_json_object(own), vision);
  const auto all = read_json_object(processor / "processor_config.json");
  return read_norm({all.at("image_processor"), all.source() + ": 'image_processor'"}, vision);
}

JoyText::JoyText(const JoyConfigs& configs, const fs::path& folder, at::Device device,
                 Paged<Qwen3Vl> model)
    : kind_(configs.kind),
      max_plain_tokens_(configs.max_plain_tokens),
      device_(device),
      tokenizer_(load_tokenizer(folder / "tokenizer")),
      norm_(read_picture_norm(folder / "processor", configs.text.vision)),
      model_(std::move(model)) {
  check_chat_tokens(*tokenizer_, kJoyChat, folder / "tokenizer");
}

// Edit without a picture reads only the beginning of a long prompt; everything else is read whole.
std::vector<std::int64_t> JoyText::ids_of(const Prompt& prompt, const Warn& warn) const {
  const auto chat = joy_chat(prompt.text, prompt.pictures_13HW.size());
  const bool is_plain = kind_ == JoyKind::kEdit && prompt.pictures_13HW.empty();
  const auto most = is_plain ? max_plain_tokens_ + kSystemTokens : kLongestChat;
  const auto encoding = tokenizer_->encode(chat, most);
  if (encoding.truncated && warn)
    warn(text_of("the prompt is longer than the ", most,
                 " tokens that the text encoder reads: its end is ignored"));
  const auto first = encoding.ids.begin() + encoding.begin;
  return {first, first + encoding.length};
}

Tensor JoyText::normed(const Tensor& picture_13HW) const {
  const auto height = picture_13HW.size(2), width = picture_13HW.size(3);
  const auto pixels = height * width;
  const auto side = model_.network.config().vision.pixels_per_token();
  require(height % side == 0 && width % side == 0 && pixels >= norm_.least_pixels &&
              pixels <= norm_.most_pixels,
          "the text encoder looks at pictures of ", norm_.least_pixels, " to ", norm_.most_pixels,
          " pixels and sides of multiples of ", side, ", one has ", width, "x", height);
  const auto unit = (picture_13HW[0].to(at::kFloat) + 1) / 2;
  const auto of_colours = [](const std::vector<double>& numbers) {
    return at::tensor(numbers, at::kFloat).view({3, 1, 1});
  };
  return ((unit - of_colours(norm_.mean)) / of_colours(norm_.deviation)).to(device_);
}

// Computed once for all prompts of a request, which look at the same pictures.
SeenTogether JoyText::see(const Prompt& prompt) const {
  if (const auto* const seen = std::any_cast<SeenTogether>(prompt.seen.get())) return *seen;
  std::vector<Tensor> pictures;
  for (const auto& picture : prompt.pictures_13HW) pictures.push_back(normed(picture));
  auto seen = model_.network.see(pictures);
  if (prompt.seen) *prompt.seen = seen;
  return seen;
}

// The system turn is dropped. Of what is too long, Edit without a picture keeps the beginning, all
// else the end.
Condition JoyText::encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const {
  const auto ids = ids_of(prompt, warn);
  const auto in_use = model_.page.use();
  const auto states = model_.network(ids, see(prompt)).slice(1, kSystemTokens);
  const auto over = states.size(1) - max_sequence_length;
  if (over <= 0) return {.text_BTC = states.contiguous(), .pooled_BC = {}};
  const bool keeps_begin = kind_ == JoyKind::kEdit && prompt.pictures_13HW.empty();
  if (warn)
    warn(text_of("of ", states.size(1), " tokens of the prompt and its pictures the transformer ",
                 "sees the ", keeps_begin ? "first " : "last ", max_sequence_length));
  return {.text_BTC = states.narrow(1, keeps_begin ? 0 : over, max_sequence_length).contiguous(),
          .pooled_BC = {}};
}

}  // namespace braid
