#include "app/files/prompt_enhancer.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "serve/api/access.h"

namespace braid {
namespace {

constexpr std::uint64_t kLongestKeyFile = 1 << 16;  // bytes

// The first line of a file or pipe. No message shows it.
std::string read_enhancer_key(const std::filesystem::path& file) {
  const auto text = read_stream(file, "the key in " + file.string(), kLongestKeyFile);
  auto key = serve::key_line(text);
  require(!key.empty(), "the key should be the first line of ", file.string(), ", it is empty");
  require(std::ranges::all_of(key, [](unsigned char c) { return c > ' ' && c < 0x7f; }),
          "the key in ", file.string(), " has spaces or other characters that no key has");
  return key;
}

}  // namespace

net::Enhancer prompt_enhancer(const EnhancerFlags& flags, const std::filesystem::path& model,
                              net::AnswerStore answers) {
  net::ChatServer server{
      .url = flags.url,
      .model = flags.model,
      .key = flags.key_file.empty() ? "" : read_enhancer_key(flags.key_file),
      .deadline = std::chrono::milliseconds(std::int64_t(flags.deadline * 1000))};
  auto prompts = flags.system.empty() ? net::system_prompts_for(model)
                                      : net::read_system_prompts(flags.system);
  return {std::move(server), std::move(prompts), std::move(answers)};
}

}  // namespace braid
