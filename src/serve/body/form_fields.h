// What a form says: its texts as JSON, and its files by field name.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "serve/body/multipart.h"

namespace braid::serve {

// A file sent by a client.
struct BroughtFile {
  std::string name;  // the client's; empty if it has none, as in JSON
  std::string bytes;
};

struct FormFields {
  std::shared_ptr<Json> texts;  // an object
  // A field is there without a file if nobody chose one.
  std::map<std::string, std::vector<BroughtFile>> files = {};
};

// `name[]` is a list, and `name[][key]` a list of objects; so are `name[0]`, `name[1]` and
// `name[0][key]`, as PHP and qs write them, in the order of the numbers. Throws ApiError for a
// field that appears twice, and for text that is not UTF-8.
FormFields read_form_fields(const std::vector<Part>& form);

}  // namespace braid::serve
