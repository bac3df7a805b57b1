// The engine as the server sees it. The program makes it of an Engine, tests of a few lambdas.
#pragma once

#include "braid/braid.h"
#include "image/input_file.h"

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
  // As Pipeline::generate; pictures go to the hook. One thread at a time calls it. Throws Error
  // with a sentence for the client.
  std::function<void(const Request&, const Hooks&)> generate;
  // The file that `braid generate` would write. `request` is complete; `files` are those of its
  // pictures.
  std::function<std::string(const Picture&, const Request& request,
                            const std::vector<InputFile>& files)>
      png;
  // Where ranks are processes: about once a second while nothing is asked, on the thread of
  // generate(), and once at the end. Throws BackendLost.
  std::function<void()> keep_alive = {};
  std::function<void()> leave = {};
};

// Loads the model. Called once, on the thread that makes the pictures.
using Load = std::function<Backend(const Hooks&)>;

}  // namespace braid::serve
