#include "pipeline/conversion/convert.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "pipeline/conversion/checked_copy.h"
#include "pipeline/conversion/partial_folder.h"
#include "pipeline/conversion/shards.h"
#include "pipeline/conversion/written_configs.h"
#include "pipeline/deployment/deployment.h"
#include "pipeline/devices/devices.h"
#include "pipeline/files/model_folder.h"
#include "pipeline/files/part_tensors.h"
#include "weights/files/folder_files.h"
#include "weights/sources/identity.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// Turns "model/" and "model/." into "model".
fs::path named(fs::path path) {
  while (path.has_parent_path() && (!path.has_filename() || path.filename() == "."))
    path = path.parent_path();
  return path;
}

// Opens all weights as loading does, without reading their numbers.
void check_parts(const Deployment& model) {
  for (const auto& part : model.family->description().parts) (void)model.files->open(part.folder);
}

Deployment deployed(const ConvertOptions& o, const Warn& warn) {
  const bool is_single_file = o.form == ConvertOptions::Form::kSingleFile;
  return deploy({.pipeline = {.model = o.model,
                              .components = o.components,
                              .published = o.published,
                              .adapters = o.adapters,
                              .dtype = o.dtype,
                              .memory = o.memory},
                 .needed = is_single_file ? WeightsNeeded::kTransformer : WeightsNeeded::kAll,
                 .say = warn,
                 .warn = warn});
}

class Conversion {
 public:
  Conversion(const ConvertOptions& options, const Hooks& hooks)
      : o_(options),
        hooks_(hooks),
        model_(deployed(options, hooks.warning)),
        files_(*model_.files),
        family_(model_.family),
        out_(named(options.out)),
        partial_(out_.string() + ".partial"),
        adapted_{.adapters = files_.adapters, .mode = AdapterMode::kFused, .warn = hooks.warning} {}

  void run();

 private:
  bool is_single_file() const { return o_.form == ConvertOptions::Form::kSingleFile; }
  // Small text encoders and the autoencoder stay as they are.
  bool changes(const Part& part) const {
    return part.role == Part::Role::kDenoiser ||
           (part.role == Part::Role::kText &&
            ((part.is_large && changes_text()) || adapts(adapted_.adapters, *family_, part)));
  }
  bool changes_text() const {
    return o_.memory.quantize_text != Quantize::kNone || o_.dtype != Dtype::kAuto;
  }
  bool stays_as_stored(const Part& part) const;
  LoadOptions load_options(const Part& part) const;
  Names written_names(const Part& part) const;
  at::ScalarType written_dtype(const Part& part, at::ScalarType dtype, const SurveyedTensor& tensor,
                               const StoredTensor& stored) const;
  std::vector<WrittenTensor> written_as(const Part& part, at::ScalarType dtype,
                                        std::vector<SurveyedTensor> asked) const;
  std::vector<WrittenTensor> asked_of(const Part& part, LoadOptions load);
  std::shared_ptr<const ShardJob> rest_of(const Part& part, const ShardJob& job) const;
  bool is_cut(const Part& part) const { return cut_.contains(part.folder); }
  void check_single_file() const;
  void check_place() const;
  void publish(const fs::path& made) const;
  void tell(std::int64_t bytes);
  ShardJob job_of(const Part& part);
  void remove_copies() const;
  void copy_the_rest() const;
  void write_configs() const;
  void finish_folder() const;

  const ConvertOptions& o_;
  const Hooks& hooks_;
  Deployment model_;
  const ModelFiles& files_;
  std::shared_ptr<const Family> family_;
  fs::path out_, partial_;
  AdaptedModel adapted_;
  std::set<std::string> cut_;  // folders of text encoders that lack layers
  Progress progress_{.phase = Phase::kLoad};
};

// Small parts that an adapter changes stay in their dtype.
bool Conversion::stays_as_stored(const Part& part) const {
  return !part.is_large || o_.dtype == Dtype::kAuto;
}

// Numbers of 8 bits without scales are those of a wider model: its other numbers, sums with an
// adapter and what is quantized would lose most of their digits.
LoadOptions Conversion::load_options(const Part& part) const {
  const auto stored = files_.open(part.folder).dtype();
  const auto wide = c10::elementSize(stored) > 1 ? stored : at::kBFloat16;
  const LoadOptions load{.dtype = stays_as_stored(part) ? wide
                                                        : choose_dtype(o_.dtype, stored, at::kCPU)};
  return part.is_large ? part.quantized(load, o_.memory) : load;
}

// A language model under transformers' names keeps its prefix, which tells its class.
Names Conversion::written_names(const Part& part) const {
  const auto own = part.names(files_.open(part.folder));
  if (!part.is_large) return own;
  const bool is_as_in_transformers = part.role == Part::Role::kText && own.spellings.empty();
  return is_as_in_transformers ? Names{.prefix = own.prefix} : family_->written_names(part);
}

// The dtype of numbers that need no decoding.
std::optional<at::ScalarType> plain_dtype(const StoredTensor& stored) {
  const bool is_plain = stored.is_readable() && !stored.is_quantized() &&
                        at::isFloatingType(stored.dtype()) && c10::elementSize(stored.dtype()) > 1;
  return is_plain ? std::optional(stored.dtype()) : std::nullopt;
}

// Unless another dtype is asked for, all numbers stay as they are stored, and what codes stand for
// may be larger than any number of float16. Otherwise those that models compute with in float32
// stay, if they are stored in `dtype`: else the few numbers beside codes of 8 bits would be
// float32, and the model's dtype with them.
at::ScalarType Conversion::written_dtype(const Part& part, at::ScalarType dtype,
                                         const SurveyedTensor& tensor,
                                         const StoredTensor& stored) const {
  const auto own = plain_dtype(stored);
  const bool is_beside_codes =
      own == dtype && !tensor.is_matrix() && tensor.plan.changes.is_empty();
  if (own && (stays_as_stored(part) || is_beside_codes)) return *own;
  return stays_as_stored(part) && tensor.dtype == at::kHalf ? at::kBFloat16 : tensor.dtype;
}

// Tensors that a layer joins may be stored in unlike dtypes, and are written apart again.
std::vector<WrittenTensor> Conversion::written_as(const Part& part, at::ScalarType dtype,
                                                  std::vector<SurveyedTensor> asked) const {
  std::vector<WrittenTensor> written;
  for (auto& tensor : asked) {
    WrittenTensor one{std::move(tensor)};
    if (!one.plan.is_drawn() && one.plan.form == Quantize::kNone)
      for (const auto& stored : one.plan.stored().tensors)
        one.dtypes.push_back(written_dtype(part, dtype, one, *stored));
    for (std::size_t i = 0; i < one.dtypes.size(); ++i)
      one.dtype = i == 0 ? one.dtypes[i] : c10::promoteTypes(one.dtype, one.dtypes[i]);
    written.push_back(std::move(one));
  }
  return written;
}

// Everything that is to be written of the part, under our names. A file may lack what the network
// does not run: then the part is a cut one.
std::vector<WrittenTensor> Conversion::asked_of(const Part& part, LoadOptions load) {
  const auto survey = [&](const Warn& warn) {
    auto adapted = adapted_;
    adapted.warn = warn;
    std::vector<SurveyedTensor> asked;
    part.make(
        Weights(source_of_part(*family_, part, &files_, adapted).tensors, load).surveyed(asked));
    return written_as(part, load.dtype, std::move(asked));
  };
  auto used = survey(adapted_.warn);
  if (part.role != Part::Role::kText) return used;
  load.wants_unused = true;
  try {
    auto all = survey({});
    if (!o_.only_used_layers || all.size() == used.size()) return all;
  } catch (const InputError&) {  // the files are cut already
  }
  cut_.insert(part.folder);
  return used;
}

// Whether each tensor is written under the name that it has in the files.
bool keeps_names(const ShardJob& job) {
  return std::ranges::all_of(job.asked, [&](const SurveyedTensor& asked) {
    const auto written = origins_of(job.names, asked.path()).front().tensors;
    const auto stored = stored_by(asked.plan);
    return written.size() == 1 && stored.size() == 1 &&
           stored.front().entry.name == written.front();
  });
}

// What a text encoder's files hold beyond that, such as the vocabulary's head: as it is, or in the
// dtype that is asked for.
std::shared_ptr<const ShardJob> Conversion::rest_of(const Part& part, const ShardJob& job) const {
  if (part.role != Part::Role::kText || o_.only_used_layers) return {};
  const auto checkpoint = files_.open(part.folder);
  if (!part.names(checkpoint).spellings.empty() && !keeps_names(job)) return {};
  const auto load = load_options(part);
  std::set<std::string> used;
  for (const auto& asked : job.asked)
    for (const auto& stored : stored_by(asked.plan)) used.insert(stored.entry.name);
  auto rest = job;
  std::vector<SurveyedTensor> unused;
  for (const auto& [name, stored] : checkpoint.tensors()) {
    const bool is_floating = stored.is_readable() && at::isFloatingType(stored.dtype());
    if (used.contains(stored.entry.name) || !is_floating) continue;
    const auto dot = name.rfind('.');
    unused.push_back({{.layer = dot == name.npos ? "" : name.substr(0, dot),
                       .name = dot == name.npos ? name : name.substr(dot + 1),
                       .shape = stored.entry.shape,
                       .dtype = load.dtype,
                       .kind = TensorRequest::Kind::kNumbers},
                      {.from = StoredRows{{std::make_shared<const StoredTensor>(stored)}}}});
  }
  if (unused.empty()) return {};
  rest.asked = written_as(part, load.dtype, std::move(unused));
  rest.source = Weights(stored_tensors(checkpoint, {}), {.dtype = load.dtype});
  rest.names = {};
  rest.shardings = {};
  return std::make_shared<const ShardJob>(std::move(rest));
}

// A single file holds the transformer alone, as safetensors.
void Conversion::check_single_file() const {
  require(out_ == o_.out, o_.out, " is the name of a folder, but the transformer alone is a file");
  require(out_.extension() != ".gguf", out_, " is named as a GGUF file, but a single file is ",
          "written as safetensors");
  require(o_.memory.quantize_text == Quantize::kNone && !o_.only_used_layers, out_,
          " takes the transformer alone: `",
          o_.only_used_layers ? "only_used_layers" : "quantize_text", "` is for text encoders");
  if (name_sampling(adapted_.adapters) && hooks_.warning)
    hooks_.warning(text_of("the adapters' metadata names how pictures are drawn, which a single ",
                           "file leaves out: say it again, or convert to a directory"));
  for (const auto& part : family_->description().parts)
    if (part.role == Part::Role::kText && adapts(adapted_.adapters, *family_, part) &&
        hooks_.warning)
      hooks_.warning(text_of("the adapters change ", part.folder, ", too, which a single file ",
                             "leaves out: load them again with it, or convert to a directory"));
}

// The result must be new and must not lie in a part of the model being read.
void Conversion::check_place() const {
  std::error_code unreadable;  // a link without a target is there, too
  const auto kind = fs::symlink_status(out_, unreadable).type();
  require(kind != fs::file_type::none, out_, " cannot be written: ", unreadable.message());
  const bool is_new = kind == fs::file_type::not_found;
  require(is_new, out_, " exists: a conversion makes a new ",
          is_single_file() ? "file" : "directory");
  const auto index = read_json(index_of(files_.folder));
  for (const auto& [part, described] : index.items())
    require(!is_folder(files_.folder / part) || !lies_in(partial_, files_.folder / part), out_,
            " lies in ", files_.folder / part, ", a part of the model to convert");
}

// Hours may have passed since the place was free.
void Conversion::publish(const fs::path& made) const {
  check_place();
  fs::rename(made, out_);
}

void Conversion::tell(std::int64_t bytes) {
  if (hooks_.stop.stop_requested()) throw Cancelled("stopped as asked; the same command resumes");
  progress_.done += bytes;
  if (hooks_.progress) hooks_.progress(progress_);
}

ShardJob Conversion::job_of(const Part& part) {
  const bool is_denoiser = part.role == Part::Role::kDenoiser;
  const bool is_alone = is_denoiser && is_single_file();
  const auto load = load_options(part);
  ShardJob job{
      .asked = asked_of(part, load),
      .source = Weights(source_of_part(*family_, part, &files_, adapted_).tensors, load),
      .names = is_alone ? family_->single_file_names() : written_names(part),
      .shardings = part.sharding(SharedModulation::kYes),
      .folder = is_alone ? partial_ : partial_ / part.folder,
      .stem = is_alone ? part.folder : stem_of(part.folder),
      .recipe = recipe_of(o_, model_.options.components),
      .shard_bytes = is_alone ? std::numeric_limits<std::int64_t>::max() : std::int64_t(1) << 30,
      .on_bytes = [this](std::int64_t bytes) { tell(bytes); },
      .is_adapted = adapts(adapted_.adapters, *family_, part),
      .notes = is_alone ? written_notes(files_.open(part.folder), files_.folder)
                        : std::map<std::string, std::string>(),
      .warn = hooks_.warning};
  job.rest = rest_of(part, job);
  return job;
}

void Conversion::write_configs() const {
  for (const auto& part : family_->description().parts) {
    if (!changes(part)) continue;
    const auto own = files_.config_of(part.folder), to = partial_ / part.folder / "config.json";
    const bool is_denoiser = part.role == Part::Role::kDenoiser;
    const bool is_as_read = !part.widened && (!is_denoiser || files_.single_file.empty());
    const bool has_own = is_as_read && is_there(own);
    if (has_own)
      copy_one(own, to);
    else
      write_file(to, family_->config_text(part));
    describe_written(to, is_cut(part));
  }
  auto index = read_ordered(index_of(files_.folder));
  for (const auto& part : family_->description().parts)  // other programs should not try
    if (changes(part) && is_cut(part) && index.contains(part.folder))
      index[part.folder][0] = "braid";
  for (const auto* const denoiser : family_->denoisers()) {
    index[denoiser->folder][0] = "diffusers";
    index[denoiser->folder][1] = denoiser->class_name;
  }
  const auto& pipeline = family_->description().pipeline_class;
  if (!pipeline.empty()) index["_class_name"] = pipeline;
  write_file(partial_ / index_of(files_.folder).filename(), index.dump(2) + "\n");
}

// An interrupted run may have copied files that the model no longer has.
void Conversion::remove_copies() const {
  std::set<std::string> made;
  for (const auto& part : family_->description().parts)
    if (changes(part)) made.insert(part.folder);
  remove_all_but(made, partial_);
}

// Copies folders that the index names and that are not there yet, and other files that are not
// weights: a snapshot of a hub also holds the same model in one file.
void Conversion::copy_the_rest() const {
  const auto index = read_json(index_of(files_.folder));
  for (const auto& entry : fs::directory_iterator(files_.folder)) {
    const auto name = entry.path().filename();
    const auto& parts = family_->description().parts;
    const bool is_made = name == index_of(files_.folder).filename() ||
                         std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
                           return name == part.folder && changes(part);
                         });
    std::error_code loop;  // of links
    const bool is_wanted = entry.is_directory(loop)
                               ? index.contains(name.string())
                               : entry.is_regular_file(loop) && !is_weights_name(name);
    if (is_wanted && !is_made) copy_all(entry.path(), partial_ / name, hooks_.warning);
  }
}

void Conversion::finish_folder() const {
  remove_copies();
  write_configs();
  copy_the_rest();
  write_sampling(partial_, adapted_.adapters, family_->description().limits.defaults);
  check_parts(deploy({.model = partial_}));
  remove_notes(partial_);
  publish(partial_);
  fs::remove(out_ / kRecipeFile);
}

// Everything that can be refused is refused before anything is written.
void Conversion::run() {
  const c10::InferenceMode inference;
  check_place();
  if (is_single_file()) check_single_file();
  require(is_single_file() || files_.part_files.empty(), o_.model.string(),
          " holds other parts of the model, too, which are not converted: a directory needs the ",
          "folders of its parts (`components`); a single file takes the transformer alone");
  require(!is_single_file() || family_->denoisers().size() == 1, o_.model.string(), " has ",
          family_->denoisers().size(), " transformers: they are converted to a directory, not to ",
          "a single file");
  std::vector<ShardJob> jobs;
  if (!is_single_file()) check_parts(model_);
  for (const auto& part : family_->description().parts) {
    if (!changes(part) || (is_single_file() && part.role != Part::Role::kDenoiser)) continue;
    // the largest first: the next run resumes where this one stops
    jobs.insert(part.role == Part::Role::kDenoiser ? jobs.begin() : jobs.end(), job_of(part));
    progress_.total += std::int64_t(files_.open(part.folder).num_bytes());
  }
  const auto lock =
      claim_partial(partial_, recipe_of(o_, model_.options.components), hooks_.warning);
  for (const auto& job : jobs) write_shards(job);
  if (!is_single_file()) return finish_folder();
  publish(partial_ / (jobs.front().stem + ".safetensors"));
  fs::remove_all(partial_);
}

}  // namespace

void convert(const ConvertOptions& options, const Hooks& hooks) {
  Conversion(options, hooks).run();
}

}  // namespace braid
