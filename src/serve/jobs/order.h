// A client's request, ready for the engine.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "braid/braid.h"
#include "image/file_form.h"
#include "image/input_file.h"

namespace braid::serve {

struct Backend;

// Begins the names of clients that are users; no address begins so.
constexpr std::string_view kUserPrefix = "user ";

struct Order {
  const Backend* backend = nullptr;        // the model's; null: the first one
  Request request = {};                    // complete
  std::vector<InputFile> files = {};       // its pictures' files
  std::string original_prompt = {};        // if an enhancer rewrote it
  std::string client = {};                 // turns are shared fairly between clients
  std::vector<std::string> warnings = {};  // for the client
  std::set<std::string> sent = {};         // names of the fields that the client sent
  FileForm form = {};
  // What is done to each picture before it becomes a file; it gets those of the request.
  std::function<void(Picture&, const PicturesIn&)> finish = {};
  bool is_kept = false;  // for clients that come back; otherwise it ends with its connection
  bool has_previews = false;
  double preview_interval = 0.5;  // seconds
};

}  // namespace braid::serve
