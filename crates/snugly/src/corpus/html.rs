//! Rendered HTML: fragments as templates cache them, and whole pages.

use super::sampler::{Sampler, slug};

/// From this size on the markup is a whole page.
const PAGE: usize = 2000;

pub fn markup(sampler: &mut Sampler, index: u64, size: usize) -> String {
    if size < PAGE { card(sampler, index, size) } else { page(sampler, index, size) }
}

fn page(sampler: &mut Sampler, index: u64, size: usize) -> String {
    let title = sampler.title();
    let mut out = format!(
        concat!(
            r#"<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>"#,
            r#"<meta name="viewport" content="width=device-width, initial-scale=1">"#,
            r#"<meta name="description" content="{description}">"#,
            r#"<link rel="stylesheet" href="/static/css/main-{hash}.css">"#,
            r#"<link rel="canonical" href="https://www.example.com/{slug}-{index}"></head><body><nav class="top">"#,
        ),
        title = title,
        description = sampler.prose(&title, 90),
        hash = sampler.hex(8),
        slug = slug(&title),
        index = index,
    );
    for _ in 0..sampler.number(3..6) {
        let topic = sampler.topic();
        out.push_str(&format!(r#"<a class="nav-link" href="/{topic}">{topic}</a>"#));
    }
    out.push_str(r#"</nav><main class="content">"#);
    let tail = format!(
        r#"</main><footer class="bottom"><a href="/terms">StudyParameters</a><a href="/privacy">Privacy</a></footer><script src="/static/js/app-{}.js" defer></script></body></html>"#,
        sampler.hex(8)
    );
    while out.len() + tail.len() + 450 < size {
        let wanted = sampler.number(600..1300).min(size - out.len() - tail.len());
        let id = sampler.number(1..u64::from(u32::MAX));
        out.push_str(&card(sampler, id, wanted));
    }
    out + &tail
}

/// A teaser of an article with its image, author and newest comments.
fn card(sampler: &mut Sampler, index: u64, size: usize) -> String {
    let title = sampler.title();
    let topic = sampler.topic();
    let href = format!("/{topic}/{}-{index}", slug(&title));
    let mut out = format!(
        concat!(
            r#"<article id="card-{index}" class="card card--{topic}"><a class="card__link" href="{href}">"#,
            r#"<img class="card__image" src="/media/{image}.jpg" alt="{title}" width="{width}"></a>"#,
            r#"<h3 class="card__title"><a class="card__link" href="{href}">{title}</a></h3>"#,
        ),
        index = index,
        topic = topic,
        href = href,
        image = sampler.hex(6),
        title = title,
        width = sampler.number(200..900),
    );
    let text = sampler.prose(&title, size / 4);
    out.push_str(&format!(r#"<p class="card__text">{text}</p>"#));
    while out.len() + 150 < size {
        out.push_str(&format!(
            r#"<div class="comment"><a class="comment__author" href="/people/{}">{}</a><p class="comment__text">{}</p></div>"#,
            sampler.number(100..99999),
            sampler.name(),
            sampler.prose(&title, 60),
        ));
    }
    out + "</article>"
}
