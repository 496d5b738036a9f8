//! Digits below a picture. Whoever repeats them has seen it; an agent that cannot read pictures proves nothing by one, whatever it
//! claims.

use super::browser::{Viewport, decode_png};

/// How many there are: nobody guesses them.
pub(super) const DIGITS: usize = 6;

const DOT: usize = 10; // pixels of a dot; large enough for a picture that is made smaller
const MARGIN: usize = 15;
const WIDE: usize = 5;
const HIGH: usize = 7;
const STEP: usize = (WIDE + 1) * DOT;

/// The digits, a row of dots in each number, the leftmost in the highest of five bits.
const GLYPHS: [[u8; HIGH]; 10] = [
    [0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110],
    [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
    [0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111],
    [0b11110, 0b00001, 0b00001, 0b01110, 0b00001, 0b00001, 0b11110],
    [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010],
    [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110],
    [0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110],
    [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000],
    [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110],
    [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100],
];

/// The digits that a few random hexadecimal ones give.
pub(super) fn derive_digits(random: &str) -> String {
    let digit = |c: char| c.to_digit(16).and_then(|value| char::from_digit(value % 10, 10));
    random.chars().filter_map(digit).take(DIGITS).collect()
}

/// The picture, a PNG, with these digits on a white strip below it.
pub(super) fn stamp_digits(picture: &[u8], digits: &str) -> Result<Vec<u8>, String> {
    let (Viewport { width, height }, mut dots) = decode_png(picture)?;
    let (wide, strip) = (width as usize, 2 * MARGIN + HIGH * DOT);
    if wide < 2 * MARGIN + digits.len() * STEP {
        return Err("the picture is too small".to_owned());
    }
    let mut below = vec![[255, 255, 255, 255]; wide * strip];
    for (place, digit) in digits.chars().filter_map(|c| c.to_digit(10)).enumerate() {
        for (row, bits) in GLYPHS[digit as usize].iter().enumerate() {
            for column in (0..WIDE).filter(|column| bits >> (WIDE - 1 - column) & 1 == 1) {
                let (left, top) = (MARGIN + place * STEP + column * DOT, MARGIN + row * DOT);
                for y in top..top + DOT {
                    below[y * wide + left..y * wide + left + DOT].fill([0, 0, 0, 255]);
                }
            }
        }
    }
    dots.append(&mut below);
    let bytes: Vec<u8> = dots.concat();
    let mut out = Vec::new();
    let wrong = |error: png::EncodingError| format!("the picture cannot be written: {error}");
    let mut encoder = png::Encoder::new(&mut out, width, height + strip as u32);
    encoder.set_color(png::ColorType::Rgba);
    let mut writer = encoder.write_header().map_err(wrong)?;
    writer.write_image_data(&bytes).map_err(wrong)?;
    writer.finish().map_err(wrong)?;
    Ok(out)
}

/// What a judge is told about the picture and the digits.
pub(super) fn describe_stamp(file: &str) -> String {
    format!(
        "\nThe picture is the file `{file}` in the folder you work in: open it with whatever you read pictures with. Below the page there \
         is a white strip with {DIGITS} digits. Repeat them in your answer as \"digits\": \"…\"; without them it counts for nothing. If \
         you cannot see pictures, say UNCERTAIN.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_plain_picture(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Rgb);
        let data = vec![90; (width * height * 3) as usize];
        encoder.write_header().and_then(|mut writer| writer.write_image_data(&data)).expect("a picture");
        bytes
    }

    /// Reads the digits back as an eye would: dot by dot.
    fn read_digits(picture: &[u8], height: usize) -> String {
        let (size, dots) = decode_png(picture).expect("a picture");
        let is_black = |x: usize, y: usize| dots[y * size.width as usize + x][0] < 128;
        let digit = |place: usize| {
            let row = |row: usize| {
                let y = height + MARGIN + row * DOT + DOT / 2;
                let x = |column: usize| MARGIN + place * STEP + column * DOT + DOT / 2;
                (0..WIDE).fold(0_u8, |bits, column| bits << 1 | u8::from(is_black(x(column), y)))
            };
            let rows: Vec<u8> = (0..HIGH).map(row).collect();
            GLYPHS
                .iter()
                .position(|glyph| glyph[..] == rows[..])
                .map_or('?', |at| char::from_digit(u32::try_from(at).unwrap_or(0), 10).unwrap_or('?'))
        };
        (0..DIGITS).map(digit).collect()
    }

    #[test]
    fn digits_are_drawn_below_and_the_picture_stays_as_it_is() {
        for wanted in ["012345", "678901", "999999"] {
            let picture = stamp_digits(&make_plain_picture(600, 40), wanted).expect("a picture");
            assert_eq!(read_digits(&picture, 40), wanted);
            let (size, dots) = decode_png(&picture).expect("a picture");
            assert_eq!((size.width, size.height), (600, 140));
            assert!(dots[..600 * 40].iter().all(|dot| *dot == [90, 90, 90, 255]));
        }
        assert!(
            stamp_digits(&make_plain_picture(100, 40), "012345").is_err()
                && stamp_digits(b"no picture", "0").is_err()
        );
        assert_eq!(derive_digits("0123456789abcdef"), "012345");
        assert_eq!(derive_digits("ffaa99"), "550099");
    }
}
