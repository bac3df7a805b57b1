// The configurations that come with Braid (models/published), and which of them a single file
// takes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace braid {

struct PublishedChoice {
  std::filesystem::path directory;
  std::string why = {};                  // "by its name"
  std::string differences = {};          // from the configuration: ", with 8 + 38 blocks ..."
  std::vector<std::string> others = {};  // names of the others with the same shape
};

// The configurations in `published`, in the order of their names.
std::vector<std::filesystem::path> published_directories(const std::filesystem::path& published);

// A name as it is compared: its letters and digits, in lower case.
std::string plain_name(const std::string& name);

// The directory in `published` for a transformer: a file, or a folder of one part. Its shapes tell
// the model; between models of one shape its name does, or its metadata; otherwise the commonest is
// taken. Blocks may be fewer or more, and the guidance may be missing, as in fine-tunes. Throws
// InputError if none fits, or if its name speaks for several.
PublishedChoice choose_published(const std::filesystem::path& transformer,
                                 const std::filesystem::path& published);

// The sentence that says what was chosen, and which flag changes it.
std::string sentence_of_choice(const PublishedChoice& choice,
                               const std::filesystem::path& transformer);

// The directory of a published name ("Z-Image-Turbo", "FLUX.1-dev", "klein-9b"); empty if there is
// none.
std::filesystem::path published_named(const std::string& name,
                                      const std::filesystem::path& published);
std::string list_of_published(const std::filesystem::path& published);  // "FLUX.1-dev, ..."

}  // namespace braid
