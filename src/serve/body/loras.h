// LoRAs named by a request: only those the server was given, never by path.
#pragma once

#include "serve/backend.h"
#include "serve/body/fields.h"

namespace braid::serve {

struct NamedLora {
  std::string name;
  double scale = 1;
};

// The field `lora`: a list of objects with `name` and `scale`. Throws ApiError.
std::vector<NamedLora> read_loras(Fields& fields);

// Removes `<lora:NAME:SCALE>` from a prompt, the syntax of AUTOMATIC1111's web UI, and its alias
// `<lyco:NAME:SCALE>`, and returns them; also with its two scales, if they are equal. Throws
// ApiError for a scale that is not a number.
std::vector<NamedLora> take_loras(std::string& prompt);

std::vector<std::string> lora_names(const Backend& backend);  // throws LorasUnreadable

// Objects with `name` and `scale`, as in requests: paths are the server's business.
Json loras_json(const std::vector<Adapter>& adapters);

// Adds the LoRAs to the adapters the server applies to all requests. Throws ApiError for an unknown
// name, and LorasUnreadable.
void apply_loras(const std::vector<NamedLora>& loras, const Backend& backend, Request& request);

// A sentence of the engine in a client's words: adapters by name and nothing of what files hold, as
// both are the server's business. Throws nothing: where the LoRAs cannot be listed, their files'
// names stand for them.
struct SentenceOfLoras {
  std::string text;
  bool names_one = false;  // of those that the request named
  bool is_gone = false;    // such a one was taken out of the folder, which is all it says
};
SentenceOfLoras with_lora_names(const std::string& sentence, const Request& request,
                                const Backend& backend);

}  // namespace braid::serve
