#include "pipeline/files/missing_parts.h"

#include <algorithm>

#include "base/error.h"
#include "pipeline/families/known_names.h"
#include "pipeline/files/model_words.h"
#include "weights/files/file_notes.h"

namespace braid {
namespace {

const UsualFile* usual_file(const Part& part, const std::string& family) {
  const auto& rows = usual_files();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const UsualFile& usual) {
    return part.folder == usual.folder && family == usual.family;
  });
  return row == rows.end() ? nullptr : &*row;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += word;
  return text;
}

std::string flag_of(const Part& part) {
  return part.role == Part::Role::kText ? "`text_encoder_files`" : "`vae_file`";
}

}  // namespace

std::vector<const Part*> parts_without_weights(const ModelFiles& files, const Family& family) {
  std::vector<const Part*> missing;
  for (const auto role : {Part::Role::kText, Part::Role::kDecoder})
    for (const auto* const part : family.parts(role))
      if (!files.has_weights(part->folder)) missing.push_back(part);
  return missing;
}

void require_all_weights(const ModelFiles& files) {
  const auto family = open_family(files);
  const auto missing = parts_without_weights(files, *family);
  if (missing.empty()) return;
  const auto& name = family->description().family;
  std::string parts, flags;
  for (const auto* const part : missing) {
    const auto* const usual = usual_file(*part, name);
    parts += (parts.empty() ? "" : ", ") + part->label;
    flags += (flags.empty() ? "" : " ") + flag_of(*part) + " " +
             (usual ? usual->example : std::string("FILE"));
  }
  throw InputError(text_of(files.single_file.string(), " is a transformer of ", name,
                           " without all other parts; missing: ", parts, " (such as ", flags,
                           "); or give a folder that has them, `components` DIR or `comfy` DIR"));
}

int likelihood(const std::filesystem::path& file, const Part& part, const std::string& family) {
  const auto* const usual = usual_file(part, family);
  if (!usual) return 0;
  const auto words = words_of_name(file.stem().string());
  auto all = words;
  for (const auto& note : naming_notes(Checkpoint::open_file(file)))
    for (const auto& word : words_of_name(note)) all.push_back(word);
  const auto text = joined(words), everything = joined(all);
  for (const auto& word : usual->other_versions)
    if (everything.find(word) != everything.npos) return -1;
  for (const auto& name : usual->names) {
    if (joined(without_formats(words)) == joined(without_formats(words_of_name(name)))) return 2;
    if (name.size() > 2 && text.find(name) != text.npos) return 1;
  }
  return 0;
}

}  // namespace braid
