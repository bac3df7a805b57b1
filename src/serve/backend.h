// A model as the server sees it. The program builds it from an Engine, tests from a few lambdas.
#pragma once

#include <map>

#include "braid/braid.h"
#include "image/input_file.h"
#include "image/png.h"

namespace braid::serve {

// The engine cannot answer any more requests, for example because a rank is lost.
class BackendLost : public Error {
 public:
  using Error::Error;
};

// A model cannot be loaded, which is no client's fault. Its sentence may name the server's files:
// it is for the log.
class LoadFailed : public Error {
 public:
  using Error::Error;
};

// The folder of LoRAs cannot be listed now, which is no client's fault. Its sentence is for the
// log.
class LorasUnreadable : public Error {
 public:
  using Error::Error;
};

struct Backend {
  std::string model;  // its name for clients: "demo"
  // Further names by which clients may ask for it: those that are listed, and others.
  std::vector<std::string> names = {}, aliases = {};
  ModelInfo info;
  // Does what Pipeline::complete does. Any thread may call it, also while pictures are being made.
  std::function<Request(const Request&, const Hooks&)> complete;
  // Does what Pipeline::generate does; pictures go to the hook. It loads the model if necessary.
  // One thread at a time may call it. Throws Error with a sentence for the client, and LoadFailed.
  std::function<void(const Request&, const Hooks&)> generate;
  // The text that `braid generate` would write into the file. `request` is complete; `files` are
  // those of its pictures.
  std::function<PngText(const Picture&, const Request& request,
                        const std::vector<InputFile>& files)>
      text;
  // How many tokens of a prompt each text encoder reads, in order; null if that is not known. Any
  // thread may call it. Throws InputError for text that is not UTF-8, and LoadFailed.
  struct TokenCount {
    std::string encoder;  // empty if there is only one
    std::int64_t tokens = 0, limit = 0;
    std::string cut = {};  // the words that are not read
  };
  std::function<std::vector<TokenCount>(const std::string& prompt, const std::string& second,
                                        int max_sequence_length)>
      count_tokens = {};
  // The ControlNets that follow control pictures, in order: the number of kinds each distinguishes,
  // 0 for a single kind.
  struct ControlNet {
    std::string name;
    int num_modes = 0;
  };
  std::vector<ControlNet> controlnets = {};
  bool has_redux = false;  // references have scales
  double unguided = 1;     // the scale at which true guidance is off
  // Whether something of the model takes a guidance as a number, where its kind allows that: a
  // default of 0 does not say.
  bool embeds_guidance = true;
  // LoRAs that requests may name, and their files; null if they may name none. Throws Error if they
  // cannot be listed now.
  std::function<std::map<std::string, std::filesystem::path>()> loras = {};
  std::vector<Adapter> adapters = {};  // of all requests, applied before those they name
  // Frees the memory of all models until their next use; null if they stay. On the thread of
  // generate(), between its calls.
  std::function<void()> release = {};
  // If ranks are processes: called about once a second while idle, on the thread of generate(), and
  // once at the end. Throws BackendLost.
  std::function<void()> keep_alive = {};
  std::function<void()> leave = {};
};

// Loads the first model, and describes all: at least one. Called once, on the thread that makes the
// pictures.
using Load = std::function<std::vector<Backend>(const Hooks&)>;

}  // namespace braid::serve
