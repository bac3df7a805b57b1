#include "serve/jobs/picture_run.h"

#include <algorithm>

#include "base/error.h"
#include "base/phases.h"
#include "image/parameters.h"
#include "serve/body/loras.h"

namespace braid::serve {
namespace {

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

// A picture is that of its seed, whatever was drawn before: skipping one, the engine begins anew
// with the next.
void PictureRun::draw(const Backend& backend) {
  const auto* left = &request_;
  std::optional<Request> rest;
  while (left->num_images > 0) {
    const auto stop = job_.begin_drawing();
    try {
      return backend.generate(*left, hooks(backend, stop));
    } catch (const Cancelled&) {
      if (!stop.stop_requested() || job_.status().is_cancelling) throw;
      leave_out_round();
    }
    rest = request_;
    rest->seed += std::uint64_t(first_);
    rest->num_images -= first_;
    left = &*rest;
  }
  if (job_.status().pictures.empty()) throw Cancelled("all pictures were skipped");
}

// The first pictures of a round may be finished.
void PictureRun::leave_out_round() {
  first_ = std::min(round_ + in_round_, request_.num_images);
  const int files = job_.num_pictures() / request_.num_images;
  const auto status = job_.status();
  const int missing = first_ * files - int(status.pictures.size()) - status.num_skipped;
  round_ = first_;
  in_round_ = 1;
  if (missing <= 0) return;
  const int begin = first_ - missing / files + 1;
  const auto which =
      begin == first_ ? text_of("picture ", first_) : text_of("pictures ", begin, " to ", first_);
  job_.skip(missing, text_of("skipped: ", which, " of ", request_.num_images));
}

Hooks PictureRun::hooks(const Backend& backend, std::stop_token stop) {
  Hooks hooks{.progress = [this](const Progress& at) { advance(at); },
              .picture = [this, &backend](Picture& picture) { take(backend, picture); },
              .warning =
                  [this, &backend](const std::string& sentence) {
                    job_.warn(with_lora_names(sentence, request_, backend).text);
                  },
              .stop = std::move(stop)};
  if (!job_.order().has_previews) return hooks;
  hooks.preview_interval = job_.order().preview_interval;
  hooks.preview = [this](const Preview& preview) {
    auto file = encoded(job_.order().form, preview.width, preview.height, preview.rgb);
    job_.preview(first_ + preview.picture, preview.step,
                 std::make_shared<const std::string>(std::move(file)));
  };
  return hooks;
}

void PictureRun::take(const Backend& backend, Picture& picture) {
  if (is_laid_on_white(job_.order().form, picture.alpha)) job_.warn(kLaidOnWhite);
  if (job_.order().finish) job_.order().finish(picture, request_.pictures);
  auto file = file_of(backend, picture);
  job_.add({.seed = picture.seed,
            .width = picture.width,
            .height = picture.height,
            .frame = picture.frame,
            .num_frames = picture.num_frames,
            .frames_per_second = picture.frames_per_second,
            .file = std::make_shared<const std::string>(std::move(file))});
  picture.rgb = picture.alpha = {};  // it is in the file
}

std::string PictureRun::file_of(const Backend& backend, const Picture& picture) const {
  const auto& order = job_.order();
  const auto text =
      with_original_prompt(backend.text(picture, request_, order.files), order.original_prompt);
  if (is_text_cut(order.form, text)) job_.warn(kTextCut);
  return encoded(order.form, picture.width, picture.height, picture.rgb, text, picture.alpha);
}

void PictureRun::enter(Phase phase, Clock::time_point now) {
  if (phase_ == phase) return;
  if (phase_) metrics_.stage_took(*phase_, seconds_between(entered_, now));
  if (phase_ == Phase::kLoad) seconds_of_load_ += seconds_between(entered_, now);
  phase_ = phase;
  entered_ = now;
}

void PictureRun::advance(const Progress& at) {
  const auto now = Clock::now();
  enter(at.phase, now);
  const bool is_step = at.phase == Phase::kDenoise && at.done > 0;
  if (is_step) {
    const auto seconds = seconds_between(stepped_, now);
    seconds_of_steps_ += seconds;
    metrics_.step_took(seconds);
    step_took_(at.num_pictures, seconds);
  }
  if (at.phase == Phase::kDenoise) stepped_ = now;
  if (at.phase == Phase::kDenoise && at.done == 0) ++rounds_;
  if (at.phase == Phase::kDenoise) steps_ = int(at.total);
  // Behind a round's last picture, no step of the next one has been taken.
  const bool is_over = at.phase == Phase::kDecode && at.done == at.total;
  const bool is_decoding = at.phase == Phase::kDecode && !is_over;
  const int done = is_decoding ? steps_ : at.phase == Phase::kDenoise ? int(at.done) : 0;
  const bool is_round = at.phase == Phase::kDenoise || at.phase == Phase::kDecode;
  round_ = first_ + (is_round ? at.first_picture : 0);
  in_round_ = is_round ? std::max(at.num_pictures, 1) : 1;
  const int next = is_over ? round_ + in_round_ : round_;
  job_.advance(phase_name(at.phase), done, steps_, seconds_left_(next, done));
}

double PictureRun::finish() {
  const auto now = Clock::now();
  if (phase_) metrics_.stage_took(*phase_, seconds_between(entered_, now));
  return (seconds_between(began_, now) - seconds_of_steps_ - seconds_of_load_) /
         std::max(rounds_, 1);
}

}  // namespace braid::serve
