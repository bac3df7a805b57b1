#include <algorithm>
#include <cctype>
#include <cstring>
#include <functional>

#include "app/flags/flag_groups.h"
#include "base/ascii.h"
#include "serve/api/address.h"
#include "serve/api_error.h"

namespace braid {
namespace {

constexpr std::int64_t kSmallestBody = 1024, kLargestBody = std::int64_t(1) << 30;
constexpr std::int64_t kLargestCache = std::int64_t(1) << 40;

// Returns a host as the server compares it with a request's Host header: lower case, without the
// port; "*", or the end of names.
std::string allowed_host(const std::string& flag, const std::string& text) {
  const bool is_address = text.starts_with('[') && text.ends_with(']');
  const auto name = text.substr(text.starts_with("*.") ? 2 : text.starts_with('.') ? 1 : 0);
  require(text == "*" || (!name.empty() && name.find_first_of("/ \t,*") == name.npos &&
                          (is_address || name.find(':') == name.npos)),
          flag, " should be a name alone, without scheme and port, such as ",
          "pictures.example.org, .example.org for all names below it, or *, it is '", text, "'");
  return ascii_lower_case(text);
}

// An empty one would stand for every address of the machine.
std::string listening_address(const std::string& flag, const std::string& text) {
  require(!trimmed(text).empty() && text != "unix:", flag,
          " should be an address to listen on, such as 127.0.0.1, or unix:PATH, it is ",
          in_quotes(text));
  return text;
}

// Returns an origin as browsers send it in the Origin header: no path, not even a slash. Files and
// sandboxed frames send "null", some applications "file://".
std::string page_origin(const std::string& flag, const std::string& text) {
  const auto lower = ascii_lower_case(text);
  if (lower == "null" || lower == "file://") return lower;
  const auto scheme = text.find("://");
  const auto host = scheme == text.npos ? text.size() : scheme + 3;
  require(scheme != 0 && host < text.size() && text.find_first_of("/ \t,*", host) == text.npos,
          flag, " should be a scheme and a host, such as https://example.org, it is '", text, "'");
  return serve::plain_origin(text);
}

// A source of a content security policy (CSP 3, frame-ancestors).
std::string frame_ancestor(const std::string& flag, const std::string& text) {
  if (text == "none" || text == "self") return "'" + text + "'";
  const auto is_plain = [](unsigned char c) {
    return is_ascii_alphanumeric(char(c)) || std::strchr("'*.:/[]-_", c);
  };
  require(!text.empty() && std::ranges::all_of(text, is_plain), flag,
          " should be self, none, or pages such as https://example.org, it is '", text, "'");
  return text;
}

std::string base_path(const std::string& flag, const std::string& text) {
  try {
    return serve::plain_prefix(text);
  } catch (const serve::ApiError& error) {
    throw InputError(text_of(flag, ": ", error.what()));
  }
}

// "a,b": names of one model.
std::vector<std::string> model_names(const std::string& flag, const std::string& text) {
  auto names = split_at_commas(text);
  for (const auto& name : names)
    require(!trimmed(name).empty() &&
                std::ranges::none_of(name, [](unsigned char c) { return c < ' '; }),
            flag, " should be a name, or several with commas between, it is '", text, "'");
  return names;
}

std::int64_t bytes_between(std::int64_t low, std::int64_t high, const std::string& flag,
                           const std::string& text) {
  const bool is_plain = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  const auto bytes = is_plain ? double(seed_number(flag, text)) : double(bytes_named(flag, text));
  require(bytes >= double(low) && bytes <= double(high), flag, " should be between ", low, " and ",
          high, " bytes, it is ", in_quotes(text));
  return std::int64_t(bytes);
}

void add_address_flags(FlagReader& read, ServeFlags& f) {
  read.text("--host", "ADDRESS", "Server",
            "Address to listen on, or unix:PATH; one that other machines can\n"
            "reach needs a key or --no-key. Default: 127.0.0.1",
            into(f.http.address, listening_address));
  read.text("--unix-socket", "PATH", "Server",
            "Listen on this Unix socket, for the user and its group, instead\n"
            "of an address",
            [&](const std::string& flag, const std::string& text) {
              require(!text.empty(), flag, " should be a path, it is empty");
              f.http.address = "unix:" + text;
            });
  read.text("--port", "N", "Server", "Port to listen on; 0 takes any free one. Default: 8188",
            into(f.http.port, whole_from(0, 65535)));
  read.path("--api-key-file", "FILE", "Server",
            "Require clients to send the key in the first line of this file or\n"
            "pipe; without it, the key in the variable BRAID_API_KEY, if set",
            f.api_key_file);
  read.flag("--no-key", "Server", "Let anybody who reaches the address make pictures", f.no_key);
  read.texts("--allow-host", "NAME", "Server",
             "Another name by which clients may address this server, such as\n"
             "that of a proxy; .example.org allows all names below it, *\n"
             "every name. With a key all are allowed",
             [&](const std::string& flag, const std::string& text) {
               f.allow_hosts.push_back(allowed_host(flag, text));
             });
  read.texts("--allow-origin", "URL", "Server",
             "Origin of other pages that may use this server, such as\n"
             "https://example.org; null stands for files and sandboxed frames,\n"
             "file:// for some applications",
             [&](const std::string& flag, const std::string& text) {
               f.allow_origins.push_back(page_origin(flag, text));
             });
  read.texts("--frame-ancestors", "URL", "Server",
             "Pages that may show this server's page in a frame, such as\n"
             "https://example.org, or self. Default: none",
             [&](const std::string& flag, const std::string& text) {
               f.frame_ancestors.push_back(frame_ancestor(flag, text));
             });
}

void add_place_flags(FlagReader& read, ServeFlags& f) {
  read.text("--base-path", "PATH", "Server",
            "The path below which a proxy shows this server, such as\n"
            "/pictures, unless it says so (X-Forwarded-Prefix)",
            into(f.base_path, base_path));
  read.text("--keep-alive", "SECONDS", "Server",
            "How long a connection may wait for its next request: longer than\n"
            "a proxy in front keeps it. Default: 130",
            [&](const std::string& flag, const std::string& text) {
              f.http.keep_alive = std::chrono::seconds(whole_number(flag, text, 0, 86400));
            });
  read.text("--unknown-fields", "RULE", "Server",
            "refuse requests with fields that are not known, or warn of them\n"
            "in the answer. Default: refuse",
            into(f.warns_of_unknown_fields, one_of<bool>({{"refuse", false}, {"warn", true}})));
}

void add_bound_flags(FlagReader& read, ServeFlags& f) {
  const auto number = [&](const char* flag, const char* help, int low, int high, auto& value) {
    read.text(flag, "N", "Limits", help, into(value, whole_from(low, high)));
  };
  number("--queue", "Most pictures that may wait. Default: 64", 1, kMostPictures,
         f.service.max_waiting_pictures);
  number("--max-pixels", "Most pixels per picture. Default: 4194304, which is 2048x2048", 1,
         1 << 28, f.bounds.max_pixels);
  read.text(
      "--max-body", "BYTES", "Limits",
      "Longest body of a request, with its pictures, such as 64MB.\n"
      "Default: 32MiB",
      into(f.bounds.max_body_bytes, std::bind_front(bytes_between, kSmallestBody, kLargestBody)));
  number("--max-input-pixels",
         "Most pixels of all pictures that a request brings. Default:\n33554432", 1, 1 << 28,
         f.bounds.max_input_pixels);
  number("--max-steps", "Most steps per picture. Default: 200", 1, kMostSteps, f.bounds.max_steps);
  read.text("--condition-cache", "BYTES", "Limits",
            "Host memory for embedded prompts and encoded pictures, which\n"
            "requests with the same ones use again; 0: none is kept.\n"
            "Default: 256MiB",
            [&](const std::string& flag, const std::string& text) {
              f.options.condition_cache = bytes_between(0, kLargestCache, flag, text);
            });
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
  add_place_flags(read, f);
  add_bound_flags(read, f);
  read.texts("-m,--model", "PATH", "Model",
             "A model directory in diffusers layout, or a single transformer\n"
             "(.safetensors, .gguf). May be given several times: requests\n"
             "choose by name, the first is loaded at startup, others when they\n"
             "are asked for, and the least recently used are unloaded.\n"
             "Default: the small model that comes with Braid",
             [&](const std::string& flag, const std::string& text) {
               require(!text.empty(), flag, " should be a path, it is empty");
               f.models.emplace_back(text);
             });
  read.texts("--served-model-name", "NAME", "Model",
             "A name by which clients know the model, instead of its folder's;\n"
             "may be given several times, or with commas between. Of several\n"
             "models each takes one of these flags, in order",
             [&](const std::string& flag, const std::string& text) {
               f.names.push_back(model_names(flag, text));
             });
  add_component_flags(read, f.options);
  add_adapter_flags(read, f.options);
  add_controlnet_flag(read, f.options.controlnets);
  add_redux_flag(read, f.options);
  read.path("--lora-dir", "DIR", "Model",
            "A folder of LoRAs (.safetensors) that requests may name, by file\n"
            "name without the extension; they are kept beside the weights",
            f.lora_folder);
  add_enhancer_flags(read, f.enhancer,
                     "Let requests ask for their prompts to be rewritten\n(\"enhance\": true) by ");
  add_machine_flags(read, f.options);
  add_graph_flag(read, f.options);
  add_text_stream_flag(read, f.options);
  add_layout_flags(read, f.options.layout);
  add_text_and_vae_layout_flags(read, f.options.layout);
  add_preset_flag(read, f.options.memory,
                  "none, plus\n"
                  "--offload as needed to fit the weights on a GPU");
  add_memory_flags(read, f.options.memory, f.stated, Bits::kMayBeLeftOpen);
  add_budget_flags(read, f.options.memory);
  add_cache_flags(read, f.options.cache);
  add_decoder_flags(read, f.vae_tiling);
  read.flag("--log-prompts", "Output", "Also write prompts to the log", f.log_prompts);
  read.action("-q,--quiet", "Output", "Do not log requests",
              [&] { f.verbosity = Verbosity::kQuiet; });
}

namespace {

void check_address(const ServeFlags& f, const std::set<std::string>& given) {
  const bool has_path = given.contains("--unix-socket");
  require(!has_path || !given.contains("--host"),
          "both --host and --unix-socket were given: give one of them");
  require(!f.http.address.starts_with("unix:") || !given.contains("--port"),
          "a Unix socket has no port: --port should be left out with ",
          has_path ? "--unix-socket" : "--host unix:PATH");
}

}  // namespace

void check_together(const ServeFlags& f, const std::set<std::string>& given) {
  check_address(f, given);
  check_budget(f.options.memory);
  check_together(f.enhancer);
  const bool has_key = !f.api_key_file.empty() || std::getenv("BRAID_API_KEY") != nullptr;
  require(serve::is_own_address(f.http.address) || has_key || f.no_key, "others can reach --host ",
          f.http.address, ": give --api-key-file FILE, or --no-key to let anybody make pictures");
  require(has_key || std::ranges::count(f.allow_hosts, "*") == 0,
          "--allow-host * lets any page use ",
          "this server by a name of its own: that takes a key (--api-key-file)");
  require(f.lora_folder.empty() || f.options.adapter_mode != AdapterMode::kFused,
          "--lora-dir is for LoRAs beside the weights: --lora-mode should not be fused");
  require(!has_key || !f.no_key, "both a key and --no-key were given: give one of them");
}

}  // namespace braid
