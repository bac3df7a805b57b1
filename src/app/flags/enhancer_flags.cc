#include "app/flags/enhancer_flags.h"

#include "app/flags/flag_groups.h"
#include "app/flags/flag_values.h"
#include "net/enhancer/chat.h"

namespace braid {
namespace {

constexpr double kLongestDeadline = 86'400;

double seconds_of_deadline(const std::string& flag, const std::string& text) {
  const auto seconds = finite_number(flag, text);
  require(seconds >= 0.001 && seconds <= kLongestDeadline, flag,
          " should be seconds, up to 86400, it is ", in_quotes(text));
  return seconds;
}

}  // namespace

void add_enhancer_flags(FlagReader& read, EnhancerFlags& f, const std::string& effect) {
  read.text("--enhancer", "URL", "Enhancer",
            effect +
                "a chat server with OpenAI's protocol\n"
                "(llama.cpp, vLLM, SGLang), such as http://127.0.0.1:8080;\n"
                "pictures are sent along. Default: off",
            into(f.url, net::chat_address));
  read.text("--enhancer-model", "NAME", "Enhancer",
            "The server's name of the model. Default: the first that it lists",
            into(f.model, plain_text));
  read.path("--enhancer-system", "PATH", "Enhancer",
            "What the enhancer is told to do: a file of text, or the folder or\n"
            "org/name in Hugging Face's cache of an enhancer (with its\n"
            "system_prompt.txt or system_prompts.json). Default: that of the\n"
            "model's folder, or Braid's own",
            f.system);
  read.path("--enhancer-key-file", "FILE", "Enhancer",
            "The server's key, in the first line of this file or pipe", f.key_file);
  read.text("--enhancer-deadline", "SECONDS", "Enhancer",
            "How long it may take; later nothing is drawn. Default: 300",
            into(f.deadline, seconds_of_deadline));
}

void check_together(const EnhancerFlags& f) {
  if (!f.url.empty())
    return require(net::has_web_client(),
                   "this build asks no enhancer: libcurl (libcurl4-openssl-dev) was missing when "
                   "it was made");
  const auto needs = [](bool is_given, const char* flag) {
    require(!is_given, flag, " needs --enhancer, the server that is asked");
  };
  needs(!f.model.empty(), "--enhancer-model");
  needs(!f.system.empty(), "--enhancer-system");
  needs(!f.key_file.empty(), "--enhancer-key-file");
  needs(f.deadline != EnhancerFlags().deadline, "--enhancer-deadline");
}

}  // namespace braid
