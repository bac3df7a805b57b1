// Names that people and repositories give to the families' models and parts, for recognising files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/kinds/file_kind.h"

namespace braid {

// The name under which a part of published models is distributed, and words of other versions that
// have its shapes.
struct UsualFile {
  std::string family, folder;
  std::vector<std::string> names;  // in lower case, without punctuation
  std::vector<std::string> other_versions;
  std::string example;
};
const std::vector<UsualFile>& usual_files();

// Words long enough to be no part of another word.
const std::vector<std::string_view>& certain_words();

// Whether most fine-tunes are made of this one of the published models of its shape.
bool is_commonest(const std::string& directory);
// A word that speaks for a model beside those of its directory's name; empty if there is none.
std::string other_word(const std::string& directory);
// The directory with the configuration of a model named so, in lower case and without punctuation;
// empty if it may only be that of the directory's own name.
std::string directory_of_name(const std::string& name);
// What precedes a name in its full form.
std::string full_name(const std::string& name);

// Whether a pipeline of diffusers is another model's, though it is named after one of Braid's.
bool is_other_pipeline(const std::string& class_name);

// Whether it is the pipeline of Redux, which is no model but looks at pictures for one.
bool is_redux_pipeline(const std::string& class_name);

// What an object of a class of diffusers or transformers is. Unknown for others.
FileKind kind_of_class(const std::string& class_name);

}  // namespace braid
