// What a folder is: a model directory in the diffusers layout, or one trained part of a model.
#pragma once

#include <filesystem>
#include <string>

#include "models/kinds/file_kind.h"

namespace braid {

struct FamilyEntry;
class JsonObject;

// The family of a model directory, by the class in its model_index.json: also a class of the
// directory's own code that is named after one of the family's. Throws InputError, also if one of
// the family's folders is missing, but for the transformer's.
const FamilyEntry& family_of_directory(const std::filesystem::path& folder);

// The same, but the transformer's folder has to be there, too.
const FamilyEntry& family_of_whole_directory(const std::filesystem::path& folder);

// The same by the model_index.json alone.
const FamilyEntry& family_of_index(const JsonObject& index);

// A sentence saying that the directory's own class is taken as one of the family's; empty if it is
// one of them.
std::string custom_class_note(const std::filesystem::path& folder);

// What a folder with weights and a config.json of one part is, by its class. Unknown for others.
FileKind kind_of_folder(const std::filesystem::path& folder);

// The index that a modular pipeline has in place of a model_index.json. Its entries have a third
// value: where the part was loaded from, which need not be this directory.
inline constexpr const char* kModularIndex = "modular_model_index.json";

// The index of a directory, of either kind; that of a model_index.json if there is none.
std::filesystem::path index_of(const std::filesystem::path& folder);

bool is_model_directory(const std::filesystem::path& folder);  // has an index

// The class [library, class] that the index names for a part; empty if it names none.
std::string class_of_part(const std::filesystem::path& folder, const std::string& part);

}  // namespace braid
