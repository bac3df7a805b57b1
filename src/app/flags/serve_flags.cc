#include "app/flags/flag_groups.h"
#include "app/flags/preset_flags.h"
#include "base/ascii.h"

namespace braid {
namespace {

// As the server compares it with a request's Host header: lower case, without the port.
std::string host_name(const std::string& flag, const std::string& text) {
  const bool is_address = text.starts_with('[') && text.ends_with(']');
  require(!text.empty() && text.find_first_of("/ \t,*") == text.npos &&
              (is_address || text.find(':') == text.npos),
          flag, " should be a name alone, without scheme and port, such as ",
          "pictures.example.org, it is '", text, "'");
  return ascii_lower_case(text);
}

// As browsers send it in the Origin header: no path, not even a slash.
std::string page_origin(const std::string& flag, const std::string& text) {
  const auto scheme = text.find("://");
  const auto host = scheme == text.npos ? text.size() : scheme + 3;
  require(scheme != 0 && host < text.size() && text.find_first_of("/ \t,*", host) == text.npos,
          flag, " should be a scheme and a host, such as https://example.org, it is '", text, "'");
  return ascii_lower_case(text);
}

void add_address_flags(FlagReader& read, ServeFlags& f) {
  read.text("--host", "ADDRESS", "Server",
            "Address to listen on; one that other machines can reach needs a\n"
            "key or --no-key. Default: 127.0.0.1",
            into(f.host, plain_text));
  read.text("--port", "N", "Server", "Port to listen on; 0 takes any free one. Default: 8188",
            into(f.port, whole_from(0, 65535)));
  read.path("--api-key-file", "FILE", "Server",
            "Require clients to send the key in the first line of this file or\n"
            "pipe; without it, the key in the variable BRAID_API_KEY, if set",
            f.api_key_file);
  read.flag("--no-key", "Server", "Let anybody who reaches the address make pictures", f.no_key);
  read.texts("--allow-host", "NAME", "Server",
             "Another name by which clients may address this server, such as\n"
             "that of a proxy",
             [&](const std::string& flag, const std::string& text) {
               f.allow_hosts.push_back(host_name(flag, text));
             });
  read.texts("--allow-origin", "URL", "Server",
             "Origin of other pages that may use this server, such as\n"
             "https://example.org",
             [&](const std::string& flag, const std::string& text) {
               f.allow_origins.push_back(page_origin(flag, text));
             });
}

void add_bound_flags(FlagReader& read, ServeFlags& f) {
  const auto number = [&](const char* flag, const char* help, int low, int high, int& value) {
    read.text(flag, "N", "Limits", help, into(value, whole_from(low, high)));
  };
  number("--queue", "Most pictures that may wait. Default: 64", 1, kMaxPictures, f.queue);
  number("--max-pixels", "Most pixels per picture. Default: 4194304, which is 2048x2048", 1,
         1 << 28, f.max_pixels);
  number("--max-steps", "Most steps per picture. Default: 200", 1, kMaxSteps, f.max_steps);
  number("--drain",
         "Seconds to finish accepted requests after a signal to stop.\n"
         "Default: 30",
         0, 86400, f.drain);
}

}  // namespace

const char* const kServeExamples =
    R"(Then open http://127.0.0.1:8188 in a browser, or point clients of OpenAI's images API at
http://127.0.0.1:8188/v1. Pictures are byte for byte those of braid generate.

Examples:
  braid serve
  braid serve -m ~/models/FLUX.1-dev --device cuda --port 9000
  braid serve --host 0.0.0.0 --api-key-file key.txt --allow-host pictures.example.org)";

void add_serve_flags(FlagReader& read, ServeFlags& f) {
  add_address_flags(read, f);
  add_bound_flags(read, f);
  read.texts("-m,--model", "PATH", "Model",
             "A model directory in diffusers layout, or a single transformer\n"
             "(.safetensors, .gguf). May be given several times: requests\n"
             "choose by name, the first is loaded at startup, others when they\n"
             "are asked for, and the least recently used are unloaded.\n"
             "Default: the small model that comes with Braid",
             [&](const std::string&, const std::string& text) { f.models.emplace_back(text); });
  add_component_flags(read, f.options);
  add_adapter_flags(read, f.options);
  add_controlnet_flag(read, f.options.controlnets);
  add_redux_flag(read, f.options);
  read.path("--lora-dir", "DIR", "Model",
            "A folder of LoRAs (.safetensors) that requests may name, by file\n"
            "name without the extension; they are kept beside the weights",
            f.lora_folder);
  add_machine_flags(read, f.options);
  add_graph_flag(read, f.options);
  add_text_stream_flag(read, f.options);
  add_layout_flags(read, f.options.layout);
  add_preset_flag(read, f.preset,
                  "none, plus\n"
                  "--offload as needed to fit the weights on a GPU");
  add_memory_flags(read, f.options.memory);
  add_budget_flags(read, f.options.memory);
  add_cache_flags(read, f.options.cache);
  add_decoder_flags(read, f.vae_tiling);
  read.flag("--log-prompts", "Output", "Also write prompts to the log", f.log_prompts);
  read.action("-q,--quiet", "Output", "Do not log requests",
              [&] { f.verbosity = Verbosity::kQuiet; });
}

void check_together(const ServeFlags& f) {
  check_budget(f.options.memory);
  const bool is_own = f.host == "127.0.0.1" || f.host == "localhost" || f.host == "::1";
  const bool has_key = !f.api_key_file.empty() || std::getenv("BRAID_API_KEY") != nullptr;
  require(is_own || has_key || f.no_key, "others can reach --host ", f.host,
          ": give --api-key-file FILE, or --no-key to let anybody make pictures");
  require(f.lora_folder.empty() || f.options.adapter_mode != AdapterMode::kFused,
          "--lora-dir is for LoRAs beside the weights: --lora-mode should not be fused");
  require(!has_key || !f.no_key, "both a key and --no-key were given: give one of them");
}

}  // namespace braid
