// A model as the server sees it. The program makes it of an Engine, tests of a few lambdas.
#pragma once

#include <map>

#include "braid/braid.h"
#include "image/input_file.h"
#include "image/png.h"

namespace braid::serve {

// The engine will answer no more requests: a rank is lost, say.
class BackendLost : public Error {
 public:
  using Error::Error;
};

struct Backend {
  std::string model;  // the name that clients know it by: "demo"
  ModelInfo info;
  // As Pipeline::complete. Any thread may call it, also while pictures are made.
  std::function<Request(const Request&, const Hooks&)> complete;
  // As Pipeline::generate; pictures go to the hook. Loads the model where it is not there. One
  // thread at a time calls it. Throws Error with a sentence for the client.
  std::function<void(const Request&, const Hooks&)> generate;
  // What the file that `braid generate` would write says. `request` is complete; `files` are those
  // of its pictures.
  std::function<PngText(const Picture&, const Request& request,
                        const std::vector<InputFile>& files)>
      text;
  // What control pictures are followed by, in their order: the kinds that each tells apart, 0 where
  // it knows one.
  struct ControlNet {
    std::string name;
    int num_modes = 0;
  };
  std::vector<ControlNet> controlnets = {};
  bool has_redux = false;  // references have scales
  // LoRAs that requests may name, and their files; null where they may name none.
  std::function<std::map<std::string, std::filesystem::path>()> loras = {};
  std::vector<Adapter> adapters = {};  // of all requests, before those that they name
  // Where ranks are processes: about once a second while nothing is asked, on the thread of
  // generate(), and once at the end. Throws BackendLost.
  std::function<void()> keep_alive = {};
  std::function<void()> leave = {};
};

// Loads the first model, and says what is known of all: at least one. Called once, on the thread
// that makes the pictures.
using Load = std::function<std::vector<Backend>(const Hooks&)>;

}  // namespace braid::serve
