#include "app/flags/flag_groups.h"
#include "app/flags/preset_flags.h"

namespace braid {
namespace {

void add_address_flags(FlagReader& read, ServeFlags& f) {
  read.text("--host", "ADDRESS", "Server",
            "Address to listen on. Others than this machine's own need a key\n"
            "or --no-key. Default: 127.0.0.1",
            into(f.host, plain_text));
  read.text("--port", "N", "Server", "Port to listen on; 0 is any free one. Default: 8188",
            into(f.port, whole_from(0, 65535)));
  read.path("--api-key-file", "FILE", "Server",
            "Ask clients for the key in this file's first line, or in the\n"
            "variable BRAID_API_KEY",
            f.api_key_file);
  read.flag("--no-key", "Server", "Let anybody who reaches the address make pictures", f.no_key);
  read.texts("--allow-host", "NAME", "Server",
             "Another name by which clients may call this server, as behind a\n"
             "proxy",
             [&](const std::string&, const std::string& text) { f.allow_hosts.push_back(text); });
  read.texts("--allow-origin", "URL", "Server",
             "A page elsewhere that may use this server, https://example.org",
             [&](const std::string&, const std::string& text) { f.allow_origins.push_back(text); });
}

void add_bound_flags(FlagReader& read, ServeFlags& f) {
  const auto number = [&](const char* flag, const char* help, int low, int high, int& value) {
    read.text(flag, "N", "Bounds", help, into(value, whole_from(low, high)));
  };
  number("--queue", "Pictures that may wait. Default: 64", 1, kMaxPictures, f.queue);
  number("--max-pixels", "Of a picture. Default: 4194304, which is 2048x2048", 1, 1 << 28,
         f.max_pixels);
  number("--max-steps", "Of a picture. Default: 200", 1, kMaxSteps, f.max_steps);
  number("--drain", "Seconds to go on with accepted requests after a signal to stop.\nDefault: 30",
         0, 86400, f.drain);
}

}  // namespace

const char* const kServeExamples =
    R"(Then open http://127.0.0.1:8188 in a browser, or give clients of OpenAI's images the
address http://127.0.0.1:8188/v1. Pictures have the bytes that braid generate gives them.

Examples:
  braid serve
  braid serve -m ~/models/FLUX.1-dev --device cuda --port 9000
  braid serve --host 0.0.0.0 --api-key-file key.txt --allow-host pictures.example.org)";

void add_serve_flags(FlagReader& read, ServeFlags& f) {
  add_address_flags(read, f);
  add_bound_flags(read, f);
  read.texts("-m,--model", "PATH", "Model",
             "A model directory in the layout of diffusers, or a single\n"
             "transformer (.safetensors, .gguf) together with --components.\n"
             "May be given several times: requests choose by name, the first\n"
             "is loaded at once, others when they are asked for, and the least\n"
             "recently used leave. Default: the small model that comes with\n"
             "Braid",
             [&](const std::string&, const std::string& text) { f.models.emplace_back(text); });
  add_component_flags(read, f.options);
  add_adapter_flags(read, f.options);
  add_controlnet_flag(read, f.options.controlnets);
  add_redux_flag(read, f.options);
  read.path("--lora-dir", "DIR", "Model",
            "A folder of LoRAs (.safetensors) that requests may name, by\n"
            "their files' names without the ending; they stand beside the\n"
            "weights",
            f.lora_folder);
  add_machine_flags(read, f.options);
  add_graph_flag(read, f.options);
  add_layout_flags(read, f.options.layout);
  add_preset_flag(read, f.preset, "none, with --offload as far as\nthe weights do not fit a GPU");
  add_memory_flags(read, f.options.memory);
  add_budget_flags(read, f.options.memory);
  add_cache_flags(read, f.options.cache);
  add_decoder_flags(read, f.vae_tiling);
  read.flag("--log-prompts", "Talk", "Write prompts into the log, too", f.log_prompts);
  read.action("-q,--quiet", "Talk", "No log of requests", [&] { f.verbosity = Verbosity::kQuiet; });
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
