// LoRAs that a request names: from those that the server was given, never by a path.
#pragma once

#include "serve/backend.h"
#include "serve/fields.h"

namespace braid::serve {

struct NamedLora {
  std::string name;
  double scale = 1;
};

// The field `lora`: a list of objects with `name` and `scale`. Throws ApiError.
std::vector<NamedLora> read_loras(Fields& fields);

// `<lora:NAME:SCALE>` in a prompt, as AUTOMATIC1111's web UI has it; they are taken out of it.
// Throws ApiError for a scale that is no number.
std::vector<NamedLora> take_loras(std::string& prompt);

std::vector<std::string> lora_names(const Backend& backend);  // that requests may use

// With the adapters that the server applies to all requests. Throws ApiError for a name that it
// does not have.
void apply_loras(const std::vector<NamedLora>& loras, const Backend& backend, Request& request);

}  // namespace braid::serve
