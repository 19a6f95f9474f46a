//! Colours that remain distinguishable in print and with colour blindness (Paul Tol, "Colour Schemes", bright
//! scheme).

/// Red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

/// First colour.
pub const BLUE: Color = Color(0x44, 0x77, 0xaa);
/// Second colour.
pub const RED: Color = Color(0xee, 0x66, 0x77);
/// Third colour.
pub const GREEN: Color = Color(0x22, 0x88, 0x33);
/// Fourth colour.
pub const YELLOW: Color = Color(0xcc, 0xbb, 0x44);
/// Fifth colour.
pub const CYAN: Color = Color(0x66, 0xcc, 0xee);
/// Sixth colour.
pub const PURPLE: Color = Color(0xaa, 0x33, 0x77);
/// For annotations.
pub const BLACK: Color = Color(0x33, 0x33, 0x33);
/// All colours in the order of use.
pub const ALL: [Color; 6] = [BLUE, RED, GREEN, YELLOW, CYAN, PURPLE];
