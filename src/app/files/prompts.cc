#include "app/files/prompts.h"

#include "app/files/input_bytes.h"
#include "app/words/readable.h"
#include "base/error.h"
#include "base/utf8.h"
#include "pipeline/request/limits.h"

namespace braid {
namespace {

constexpr std::size_t kMaxText = 100'000;  // bytes

}  // namespace

std::vector<std::string> read_prompt_file(const std::string& path) {
  const auto text = read_input("--prompt-file", path, Terminal::kRead);
  const auto name = path == "-" ? "standard input" : path;
  std::string_view rest = text;
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);
  std::vector<std::string> prompts;
  for (int number = 1; !rest.empty(); ++number) {
    auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == line.npos) continue;
    check_text(text_of(name, ", line ", number), std::string(line));
    prompts.emplace_back(line);
  }
  require(!prompts.empty(), "there is no prompt in ", name, ": one per line was expected");
  return prompts;
}

void check_text(const std::string& name, const std::string& text) {
  require(text.size() <= kMaxText, name, " should have at most ", kMaxText, " bytes, it has ",
          text.size());
  require(text.find('\0') == text.npos, name, " should be text, it has a NUL byte");
  require(is_valid_utf8(text), name, " should be UTF-8 text, it is ", in_quotes(text));
}

Request with_prompts(const GenerateFlags& flags) {
  require_one_reader_of_standard_input(flags);
  auto request = flags.request;
  if (flags.prompt) check_text("the prompt", *flags.prompt);
  request.prompts = flags.prompt ? std::vector{*flags.prompt} : read_prompt_file(flags.prompt_file);
  if (flags.prompt_2) {
    check_text("--prompt-2", *flags.prompt_2);
    request.prompts_2.assign(request.prompts.size(), *flags.prompt_2);
  }
  if (!flags.boxes.empty()) {
    request.boxes = read_input("--boxes", flags.boxes);
    check_text(flags.boxes.string(), request.boxes);
    require(!request.boxes.empty(), flags.boxes.string(), " should hold boxes, it is empty");
  }
  if (request.negative_prompt) check_text("--negative-prompt", *request.negative_prompt);
  const auto pictures = request.prompts.size() * std::size_t(request.num_images);
  require(pictures <= std::size_t(kMostPictures), "at most ", kMostPictures,
          " pictures can be made at once, ", pictures,
          " were asked for: lower --num-images or give fewer prompts");
  return request;
}

}  // namespace braid
