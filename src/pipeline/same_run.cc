#include "pipeline/same_run.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <iomanip>
#include <span>
#include <sstream>

#include "base/error.h"
#include "comm/texts.h"
#include "pipeline/files/model_files.h"
#include "pipeline/planner/grid.h"
#include "weights/sources/identity.h"

namespace braid {
namespace {

constexpr std::size_t kSample = 64;  // bytes from the middle of each tensor
constexpr char kCoded = '#';         // begins a value that tells a reader nothing

template <class... Values>
std::string exact(const Values&... values) {
  std::ostringstream out;
  out << std::setprecision(15);
  (out << ... << values);
  return out.str();
}

std::string exact_list(const std::vector<double>& values) {
  std::string list;
  for (const auto value : values) list += exact(value, " ");
  return list;
}

// A line for each fact: its name, then its value. All ranks have the same names in the same order.
class Facts {
 public:
  template <class... Values>
  void add(const std::string& name, const Values&... values) {
    lines_ += name + '\t' + exact(values...) + '\n';
  }
  void add_coded(const std::string& name, const std::string& value) {
    lines_ += name + '\t' + kCoded + digest(std::as_bytes(std::span(value))) + '\n';
  }
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
};

[[noreturn]] void refuse(std::size_t rank, const std::string& got, const std::string& want) {
  const auto name = got.substr(0, got.find('\t'));
  const auto value_of = [](const std::string& line) { return line.substr(line.find('\t') + 1); };
  const auto difference =
      value_of(got).starts_with(kCoded)
          ? text_of("differs from rank 0 in the ", name)
          : text_of("has ", name, " ", value_of(got), " and rank 0 has ", value_of(want));
  throw InputError(
      text_of("the ranks should draw the same picture, but rank ", rank, " ", difference));
}

void check_same(const Group& world, const Facts& mine) {
  world.await();  // ranks read files for unequal times
  const auto all = all_gather_texts(world, mine.lines());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    std::istringstream first(all.front()), other(all[rank]);
    for (std::string want, got; std::getline(first, want) && std::getline(other, got);)
      if (want != got) refuse(rank, got, want);
  }
}

bool are_processes(const Group& world, const Deployment& d) {
  return d.options.layout.ranks == Ranks::kProcesses && world.size() > 1;
}

void add_sample(const StoredTensor& stored, std::string& samples) {
  const auto& entry = stored.entry;
  samples += text_of(entry.name, " ", at::IntArrayRef(entry.shape), " ");
  const auto size = std::min<std::uint64_t>(kSample, entry.size);
  const auto middle = stored.file->bytes().subspan(entry.begin + (entry.size - size) / 2, size);
  samples.append(reinterpret_cast<const char*>(middle.data()), middle.size());
}

void add_weights(const ModelFiles& files, const Family& family, Facts& facts) {
  for (const auto& part : family.description().parts) {
    const auto checkpoint = files.open(part.folder);
    std::string samples;
    for (const auto& [name, stored] : checkpoint.tensors()) add_sample(stored, samples);
    facts.add_coded("weights of the " + part.folder, samples);
  }
}

void add_adapters(const std::vector<AppliedAdapter>& adapters, Facts& facts) {
  std::string samples;
  for (const auto& [file, scale] : adapters) {
    samples += exact("at ", scale, " ");
    for (const auto& [name, module] : file->modules())
      for (const auto& [role, stored] : module.tensors) add_sample(stored, samples);
  }
  facts.add_coded("LoRAs", samples);
}

void add_prompts(const Settings& s, Facts& facts) {
  std::string prompts;
  for (const auto& prompt : s.prompts) prompts += prompt.text + '\0' + prompt.second + '\0';
  facts.add_coded("prompts", prompts);
  facts.add_coded("negative prompt", s.negative ? "one: " + s.negative->text : "none");
  facts.add("max_sequence_length", s.max_sequence_length);
}

void add_sampling(const Settings& s, Facts& facts) {
  const auto& [sampler, schedule, sigmas, base_sigmas, shift] = s.sampling;
  facts.add("steps", s.steps);
  facts.add_coded("sampler", text_of(sampler ? int(*sampler) : -1));
  facts.add_coded("schedule", text_of(schedule ? int(*schedule) : -1, " ", s.num_steps));
  facts.add_coded("sigmas", exact_list(sigmas) + "base: " + exact_list(base_sigmas));
  facts.add_coded("shift", shift ? exact(*shift) : "the model's");
  facts.add_coded("strength", s.strength ? exact(*s.strength) : "none");
}

void add_guidance(const Settings& s, Facts& facts) {
  const auto& t = s.true_guidance;
  facts.add("guidance", s.guidance);
  facts.add("true guidance", t.scale);
  facts.add("guidance rescale", t.rescale);
  facts.add_coded("form of true guidance",
                  exact(int(t.from), " ", t.norm_cap, " ", t.kept_channels, " ", t.way_from));
  facts.add("true guidance until", t.until);
}

void add_pixels(const Pixels& pixels, std::string& text) {
  text +=
      text_of(pixels.width, "x", pixels.height, " ", digest(std::as_bytes(std::span(pixels.rgb))),
              digest(std::as_bytes(std::span(pixels.alpha))), "\n");
}

void add_pictures(const PicturesIn& in, const Settings& s, Facts& facts) {
  std::string start, references, controls;
  for (const auto* const picture : {&in.init, &in.mask})
    if (*picture) add_pixels(**picture, start);
  for (const auto& reference : in.references) add_pixels(reference, references);
  for (const auto& control : in.controls) add_pixels(control.picture, controls);
  for (const auto& f : s.followed)
    controls += exact(f.net, " ", f.scale, " ", f.from, " ", f.to, " ", f.mode.value_or(-1), "\n");
  facts.add_coded("initial picture or mask", exact(start, s.mask_blur));
  facts.add_coded("references",
                  references + exact_list(s.reference_scales) + text_of(int(s.reference_cache)));
  facts.add_coded("control pictures", controls);
}

}  // namespace

void check_same_model(const Group& world, const Deployment& d) {
  if (!are_processes(world, d)) return;
  const auto& memory = d.options.memory;
  const auto& cache = d.options.cache;
  Facts facts;
  facts.add("Braid", version());
  facts.add("the family", d.family->description().family);
  facts.add("the layout", layout_name(d.degrees()));
  facts.add("dtype", c10::getDtypeNames(d.dtype).first);
  facts.add_coded("form of weights", text_of(int(memory.quantize), " ", int(memory.quantize_text)));
  facts.add_coded("cache", exact(int(cache.mode), " ", cache.threshold, " ", cache.most_in_a_row,
                                 " ", exact_list(cache.polynomial)));
  facts.add("a number of ControlNets of", d.options.controlnets.size());
  if (d.files) add_adapters(d.files->adapters, facts);
  if (d.files) add_weights(*d.files, *d.family, facts);
  check_same(world, facts);
}

void check_same_request(const Group& world, const Deployment& d, const Request& request,
                        const Settings& s, const std::vector<AppliedAdapter>& adapters) {
  if (!are_processes(world, d)) return;
  Facts facts;
  facts.add("size", s.width, "x", s.height);
  facts.add("frames", s.frames);
  facts.add("pictures", s.num_pictures(), " in batches of ", s.batch_size);
  facts.add("seed", s.seed);
  add_prompts(s, facts);
  add_sampling(s, facts);
  add_guidance(s, facts);
  add_pictures(request.pictures, s, facts);
  add_adapters(adapters, facts);
  check_same(world, facts);
}

}  // namespace braid
