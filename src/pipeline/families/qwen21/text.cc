#include "pipeline/families/qwen21/text.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/request_error.h"
#include "pipeline/families/chat_tokens.h"
#include "pipeline/families/encoded_pictures.h"
#include "text/chat.h"
#include "text/tokenizer_files.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLongestTurn = 1 << 10;  // tokens of a turn that is no prompt

std::string whole_chat(const std::string& prompt, std::size_t num_pictures) {
  return std::string(kQwen21System) + qwen21_chat(prompt, num_pictures);
}

// The pictures that stand in a chat, for an error.
std::string beside(std::size_t num_pictures) {
  if (num_pictures == 0) return "";
  return num_pictures == 1 ? " and a picture" : text_of(" and ", num_pictures, " pictures");
}

std::vector<std::int64_t> ids_in(const Encoding& encoding) {
  const auto first = encoding.ids.begin() + encoding.begin;
  return {first, first + encoding.length};
}

// Where rows of pictures and of text are, among all: each picture's token stands for its whole
// grid.
struct Rows {
  std::vector<std::int64_t> text;
  std::vector<std::int64_t> places;  // how many rows of text stand before each picture
};

Rows rows_of(const std::vector<std::int64_t>& ids, std::int64_t image_token,
             std::int64_t num_system, const std::vector<TokenGrid>& grids) {
  Rows rows;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == image_token) {
      const auto& grid = grids[rows.places.size()];
      rows.places.push_back(std::int64_t(rows.text.size()));
      next += grid.rows * grid.columns;
      continue;
    }
    if (std::int64_t(i) >= num_system) rows.text.push_back(next);
    ++next;
  }
  return rows;
}

}  // namespace

// Prompts are read without pictures: how many tokens those have is not known before they are
// prepared.
std::vector<PromptReader> qwen21_prompt_readers() {
  return {{.tokenizer = "processor",
           .chat =
               [](const std::string& prompt) {
                 return whole_chat(prompt, 0) + std::string(kAssistantTurn);
               },
           .unseen_text = std::string(kQwen21System)}};
}

Qwen21Text::Qwen21Text(const Qwen3VlConfig& config, const fs::path& folder, at::Device device,
                       Paged<Qwen3Vl> model, const Warn& warn)
    : image_token_(config.image_token),
      device_(device),
      tokenizer_(load_tokenizer(folder)),
      num_system_(tokenizer_->encode(std::string(kQwen21System), kLongestTurn).length),
      process_(folder, config.vision.form()),
      model_(std::move(model)) {
  check_chat_tokens(*tokenizer_, kTurnsWithPictures, folder);
  check_image_token(*tokenizer_, image_token_, folder);
  warn_of_other_template(folder, kTurnsOfTemplate, warn);
}

// The reference reads prompts of any length. Here the end of a very long one is cut, not that of
// its chat, and not the marks of its pictures, which stand before it.
std::vector<std::int64_t> Qwen21Text::ids_of(const Prompt& prompt, int max_sequence_length,
                                             const Warn& warn) const {
  check_no_video(prompt.text);
  const auto end = ids_in(tokenizer_->encode(std::string(kAssistantTurn), kLongestTurn));
  const auto num_pictures = prompt.pictures_13HW.size();
  const auto unseen = num_system_ + std::int64_t(num_pictures);
  const auto shortest = tokenizer_->encode(whole_chat("", num_pictures), kLongestTurn).length;
  const auto least = shortest - unseen + std::int64_t(end.size());
  require_field("max_sequence_length", max_sequence_length >= least,
                "`max_sequence_length` should be at least ", least,
                " to hold the chat around a prompt", beside(num_pictures), ", it is ",
                max_sequence_length);
  const auto most = max_sequence_length - std::int64_t(end.size());
  const auto read = tokenizer_->encode(whole_chat(prompt.text, num_pictures), unseen + most);
  if (read.truncated) warn_of_cut(most, warn);
  auto ids = ids_in(read);
  ids.insert(ids.end(), end.begin(), end.end());
  return ids;
}

Condition Qwen21Text::encode(const Prompt& prompt, int max_sequence_length,
                             const Warn& warn) const {
  const auto ids = ids_of(prompt, max_sequence_length, warn);
  const auto in_use = model_.page.use();
  const auto pictures = encoded_pictures(prompt, process_, model_.network, device_);
  const auto states = model_.network(ids, pictures);
  const auto rows = rows_of(ids, image_token_, num_system_, pictures.grids);
  Condition made{.text_BTC = states.index_select(1, at::tensor(rows.text).to(device_)),
                 .pooled_BC = {}};
  if (!rows.places.empty()) made.places_R = at::tensor(rows.places);
  return made;
}

}  // namespace braid
